"""Opt-outs: the words by which contacts opt out of messages, or in again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from app.domain.work.units import Unit
from app.lib import normalization
from app.models.workspaces import Workspace

# The words that opt out, by language. A word counts only if it is the whole message. Leave out words that a shop may
# ask contacts to send.
STOP: Mapping[str, tuple[str, ...]] = {
    "ar": ("توقف", "إيقاف", "إلغاء الاشتراك"),
    "bg": ("стоп", "отписване"),
    "cs": ("stop", "odhlásit"),
    "da": ("stop", "afmeld"),
    "de": ("stop", "stopp", "abmelden", "abbestellen"),
    "el": ("στοπ", "διακοπή"),
    "en": ("stop", "stop all", "stopall", "unsubscribe", "opt out", "optout", "opt-out"),
    "es": ("alto", "baja", "darme de baja", "desuscribir", "desuscribirme"),
    "fi": ("stop", "lopeta", "peruuta tilaus"),
    "fr": ("stop", "arrêt", "arret", "désabonner", "désinscrire", "se désabonner"),
    "he": ("הסר", "הסרה", "עצור"),
    "hi": ("रोकें", "बंद करें"),
    "hu": ("stop", "leiratkozás"),
    "id": ("stop", "berhenti", "berhenti berlangganan"),
    "it": ("stop", "ferma", "cancellami", "disiscrivimi"),
    "ja": ("停止", "配信停止"),
    "ko": ("중지", "수신거부", "수신 거부"),
    "nb": ("stopp", "avmeld"),
    "nl": ("stop", "stoppen", "afmelden", "uitschrijven"),
    "pl": ("stop", "wypisz", "rezygnuję"),
    "pt": ("parar", "pare", "sair", "descadastrar", "cancelar inscrição"),
    "ro": ("stop", "dezabonare"),
    "ru": ("стоп", "отписаться", "отписка"),
    "sv": ("stopp", "stop", "avregistrera"),
    "tr": ("dur", "durdur", "aboneliği iptal et"),
    "uk": ("стоп", "відписатися"),
    "vi": ("dừng", "hủy đăng ký"),
    "zh": ("停止", "退订", "退訂", "取消订阅", "取消訂閱"),
}
# Everyday words. In an answer to a question, they do not opt out.
AMBIGUOUS = (
    *("توقف", "إيقاف", "διακοπή", "abbestellen", "alto", "baja", "lopeta", "arrêt", "הסר", "הסרה", "עצור"),
    *("रोकें", "बंद करें", "berhenti", "ferma", "停止", "중지", "stoppen", "wypisz", "rezygnuję"),
    *("parar", "pare", "sair", "dur", "durdur", "dừng"),
)
START = ("start", "unstop", "subscribe", "opt in", "opt-in", "старт", "تشغيل", "开始", "開始", "시작", "התחל", "शुरू")

Wish = Literal["stop", "start"]

_COMMAND = re.compile(r"/(\w+)(@\w+)?(\s.*)?", re.DOTALL)


def opt_wish(unit: Unit, workspace_id: str, text: str | None, *, is_answer: bool = False) -> Wish | None:
    """Returns "stop" or "start" if the whole text is one of their words; None for any other text.

    A workspace's own words replace STOP. `is_answer`: the contact pressed a button or typed its label, or a run waits
    for the reply. Everyday words are then ignored.
    """
    # Every word is shorter than 100 characters, so a longer text need not be folded.
    if not text or len(text) > 100:
        return None
    said = _plain(text)
    if said in _words(unit, workspace_id):
        return None if is_answer and said in _AMBIGUOUS else "stop"
    return "start" if said in _BUILT_IN_START else None


def _words(unit: Unit, workspace_id: str) -> Collection[str]:
    def find() -> Collection[str]:
        workspace = Workspace.select(Workspace.opt_out_words).where(Workspace.id == workspace_id).first()
        own = workspace and workspace.opt_out_words
        return _BUILT_IN_STOP if own is None else _plain_words(own)

    return unit.noted(("words that opt out", workspace_id), find)


def _plain_words(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_plain, words)) - {""}


def _plain(text: str) -> str:
    """Folds the text and strips spaces, punctuation and invisible characters around its words."""
    if command := _COMMAND.fullmatch(text.strip()):
        text = command[1]
    kept = [" " if each.isspace() else each for each in unicodedata.normalize("NFKC", text) if _is_visible(each)]
    while kept and not _is_of_word(kept[0]):
        del kept[0]
    while kept and not _is_of_word(kept[-1]):
        del kept[-1]
    words = " ".join("".join(kept).casefold().split())
    return words if words in _EXACT else normalization.unaccented(words)


def _is_visible(character: str) -> bool:
    return character.isspace() or not unicodedata.category(character).startswith("C")


def _is_of_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


# Without its accents, this word would equal "đúng", which means yes.
_EXACT = ("dừng",)
_BUILT_IN_STOP = _plain_words(word for words in STOP.values() for word in words)
_BUILT_IN_START = _plain_words(START)
_AMBIGUOUS = _plain_words(AMBIGUOUS)
