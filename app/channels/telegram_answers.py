"""Reads the Bot API's answers (https://core.telegram.org/bots/api#making-requests)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.channels.base import Outcome, Verdict
from app.channels.provider_data import pause_of
from app.channels.verdicts import PAUSE_SECONDS, broken, document_of, unanswered, unreadable
from app.outbound import Answer

# The longest detail that is kept, in characters.
MOST_DETAIL = 300


def result_of(answer: Answer) -> Any:
    """Returns the result in a successful answer; None in any other."""
    said = document_of(answer)
    return said.get("result") if answer.ok and said.get("ok") is True else None


def verdict_of(answer: Answer, chat: str = "") -> Verdict:
    """Returns the verdict on a request.

    If it sent a message to `chat`, SENT has the message's identifier.
    """
    if answer.status is None:
        return unanswered(answer)
    said = document_of(answer)
    if answer.ok:
        if said.get("ok") is not True:
            return unreadable("Telegram")
        return Verdict(Outcome.SENT, _identifier(said.get("result"), chat))
    detail = str(said.get("description") or answer.error_without_target or "")[:MOST_DETAIL]
    asked = _asked_pause(answer, said)
    # Telegram asks for a retry, so the request was not accepted, whatever the status says.
    if answer.status == 429 or asked is not None:
        seconds = pause_of(asked, PAUSE_SECONDS)
        return Verdict(Outcome.LATER, code="throttled", detail=detail, pause_seconds=seconds, pauses="channel")
    if answer.status >= 500:
        return broken(detail)
    return _refusal(answer.status, said, detail)


def _refusal(status: int, said: Mapping[str, Any], detail: str) -> Verdict:
    # 401 means a revoked token, 404 an unknown one. Both count only in Telegram's own format, not from a proxy.
    if status in (401, 404) and said.get("ok") is False:
        return Verdict(Outcome.UNAUTHORIZED, code="unauthorized", detail=detail)
    if status == 403:
        words = detail.lower()
        if "blocked" in words or "deactivated" in words:
            return Verdict(Outcome.FAILED, code="blocked", detail=detail, is_opt_out=True)
        return Verdict(Outcome.FAILED, code="forbidden", detail=detail)
    return Verdict(Outcome.FAILED, code="too_large" if status == 413 else "rejected", detail=detail)


def _asked_pause(answer: Answer, said: Mapping[str, Any]) -> object:
    """Returns the pause in seconds that Telegram asks for, unchecked; None if it asks for none."""
    parameters = said.get("parameters")
    asked = parameters.get("retry_after") if isinstance(parameters, dict) else None
    if asked is None and answer.status == 429:
        asked = dict(answer.headers).get("retry-after")
    return asked


def _identifier(result: Any, chat: str) -> str | None:
    number = result.get("message_id") if isinstance(result, dict) else None
    return None if number is None else f"{chat}:{number}"
