"""Opt-outs: which messages ask for no more messages, in many languages, and which do not."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.conversations import opt_outs
from app.domain.conversations.opt_outs import STOP
from app.domain.work.units import Unit
from app.models.workspaces import Workspace

WORDS = [(language, word) for language, words in STOP.items() for word in words]


def wish(workspace_id: str, text: str | None, *, is_answer: bool = False) -> Any:
    return opt_outs.opt_wish(Unit(), workspace_id, text, is_answer=is_answer)


@pytest.mark.parametrize(("language", "word"), WORDS)
def test_each_word_of_each_language_is_known_in_any_spelling(workspace_id: str, language: str, word: str) -> None:
    for text in (word, word.upper(), f" {word.capitalize()}.\n", f"«{word}»!!"):
        assert wish(workspace_id, text) == "stop", text


@pytest.mark.parametrize(
    "text",
    [
        *("ايقاف", "الغاء الاشتراك", "أيقاف", "توقــف", "تَوَقُّف", "ABONELİĞİ İPTAL ET", "ABONELIGI IPTAL ET"),
        *("aboneliği \u0131ptal et", "ΔΙΑΚΟΠΗ", "desabonner", "SE DESABONNER", "cancelar inscricao", "odhlasit"),
        *("rezygnuje", "huy dang ky", "HUY DANG KY", "leiratkozas", "arre\u0302t", "du\u031b\u0300ng", "DỪNG"),
    ],
)
def test_a_plain_keyboard_and_a_languages_own_capitals_are_understood(workspace_id: str, text: str) -> None:
    assert wish(workspace_id, text) == "stop"


@pytest.mark.parametrize("text", ["đúng", "dung", "Dũng", "बद कर", "¡Ya no!", "Baja?! temporada"])
def test_another_word_with_the_same_letters_is_none(workspace_id: str, text: str) -> None:
    assert wish(workspace_id, text) is None


def test_an_everyday_word_is_no_wish_in_an_answer(workspace_id: str) -> None:
    for word in ("Alto", "PARE", "Ferma!", "ايقاف", "ΔΙΑΚΟΠΗ", "停止"):
        assert (wish(workspace_id, word), wish(workspace_id, word, is_answer=True)) == ("stop", None), word
    for word in ("STOP", "Stopp", "стоп", "Unsubscribe", "Se désabonner", "退订"):
        assert wish(workspace_id, word, is_answer=True) == "stop", word


def test_of_a_workspaces_own_words_only_an_everyday_one_is_none_in_an_answer(workspace_id: str) -> None:
    Workspace.update(opt_out_words=["Alto", "Genug", "Désinscription"]).where(Workspace.id == workspace_id).execute()

    assert [wish(workspace_id, word, is_answer=True) for word in ("alto", "GENUG")] == [None, "stop"]
    assert wish(workspace_id, "DESINSCRIPTION") == "stop"


@pytest.mark.parametrize(
    "text", ["s\u200btop", "\u202estop\u202c", "\uff33\uff34\uff2f\uff30", "*STOP*", "stop 🛑", "st\u2060op"]
)
def test_what_is_invisible_or_around_it_does_not_count(workspace_id: str, text: str) -> None:
    assert wish(workspace_id, text) == "stop"


@pytest.mark.parametrize(
    "text", [None, "", "🛑", "stop by at noon", "don't stop", "stopped", "cancel", "no", "stop " * 50, "/", "a\0b"]
)
def test_any_other_message_is_none(workspace_id: str, text: str | None) -> None:
    assert wish(workspace_id, text) is None


@pytest.mark.parametrize("text", ["START", "/start", "/start from-campaign-7", "/start@shop_bot", "Unstop!"])
def test_start_takes_it_back(workspace_id: str, text: str) -> None:
    assert wish(workspace_id, text) == "start"


def test_a_workspaces_own_words_replace_those_of_stop(workspace_id: str) -> None:
    Workspace.update(opt_out_words=["Nix da", ""]).where(Workspace.id == workspace_id).execute()

    assert wish(workspace_id, "nix  DA!") == "stop"
    assert wish(workspace_id, "STOP") is None
    assert wish(workspace_id, "start") == "start"


def test_or_there_are_none(workspace_id: str) -> None:
    Workspace.update(opt_out_words=[]).where(Workspace.id == workspace_id).execute()

    assert wish(workspace_id, "stop") is None
