"""Reads the answers and errors of WhatsApp's API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.channels.base import Outcome, Verdict
from app.channels.provider_data import pause_of
from app.channels.verdicts import broken, document_of, repeatable, unanswered, unreadable
from app.outbound import Answer

# The pause if the API does not name one.
THROTTLED_SECONDS = 5.0

Pauses = Literal["channel", "conversation"]

_UNAUTHORIZED = {0, 10, 190, 131005, *range(200, 300)}
# Seconds to pause, and what to pause. Codes 4 and 80007 are hourly call limits; 131056 limits messages to one contact.
_LATER: Mapping[int, tuple[float, Pauses]] = {
    2: (10.0, "channel"),
    4: (30.0, "channel"),
    80007: (30.0, "channel"),
    130429: (2.0, "channel"),
    131016: (10.0, "channel"),
    131048: (60.0, "channel"),
    131053: (10.0, "conversation"),
    131056: (6.0, "conversation"),
    131057: (60.0, "channel"),
    133004: (10.0, "channel"),
    133016: (60.0, "channel"),
}
# The API itself does not know the request's outcome.
_UNCLEAR = {1, 131000, 135000}
_OPTED_OUT = 131050
_CODES: Mapping[int, str] = {
    368: "account_restricted",
    130472: "not_delivered",
    130497: "account_restricted",
    131026: "undeliverable",
    131031: "account_restricted",
    131042: "account_restricted",
    131047: "window_closed",
    131049: "not_delivered",
    _OPTED_OUT: "opted_out",
    131051: "unsupported",
    131052: "media_failed",
    131053: "media_failed",
    **dict.fromkeys((132000, 132001, 132005, 132007, 132008, 132012, 132015, 132016), "template_refused"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error that the API reports, in an answer or a status."""

    number: int
    detail: str

    @property
    def code(self) -> str:
        """Our own code for the error."""
        return _CODES.get(self.number, "refused")

    @property
    def is_opt_out(self) -> bool:
        """Whether the contact has opted out of messages."""
        return self.number == _OPTED_OUT


def problem_of(error: object) -> Problem | None:
    """Reads an `error` member, or an element of `errors`; None if it is not an error."""
    if not isinstance(error, dict):
        return None
    try:
        number = int(error["code"])
    except (KeyError, TypeError, ValueError):
        return None
    data = error.get("error_data")
    said = (data.get("details") if isinstance(data, dict) else None) or error.get("message") or error.get("title")
    return Problem(number, f"{str(said or 'WhatsApp refused the request.')[:500]} ({number})")


def judge(answer: Answer, is_unclear: bool, expect: Callable[[Mapping[str, Any]], str | None]) -> Verdict:
    """Returns the verdict on an answer. `expect` returns the identifier in a successful document.

    A request that may have been accepted gets UNKNOWN if `is_unclear`; otherwise LATER, because it is safe to repeat.
    """
    verdict = _verdict(answer, expect)
    return verdict if is_unclear else repeatable(verdict)


def _verdict(answer: Answer, expect: Callable[[Mapping[str, Any]], str | None]) -> Verdict:
    if answer.status is None:
        return unanswered(answer)
    document = document_of(answer)
    if answer.ok:
        found = expect(document)
        return unreadable("WhatsApp") if found is None else Verdict(Outcome.SENT, found)
    problem = problem_of(document.get("error"))
    return _status(answer) if problem is None else _refusal(answer, problem)


def _refusal(answer: Answer, problem: Problem) -> Verdict:
    number, detail = problem.number, problem.detail
    if number in _UNAUTHORIZED:
        return Verdict(Outcome.UNAUTHORIZED, None, "unauthorized", detail)
    if number in _LATER:
        seconds, pauses = _LATER[number]
        return Verdict(Outcome.LATER, None, "throttled", detail, _pause(answer, seconds), pauses)
    if number in _UNCLEAR and answer.status is not None and answer.status >= 500:
        return broken(detail, pauses="conversation")
    return Verdict(Outcome.FAILED, None, problem.code, detail, is_opt_out=problem.is_opt_out)


def _status(answer: Answer) -> Verdict:
    """Returns the verdict on a status without an API error, as proxies send it."""
    assert answer.status is not None
    if answer.status == 401:
        return Verdict(Outcome.UNAUTHORIZED, None, "unauthorized", answer.error)
    if answer.status == 429:
        return Verdict(Outcome.LATER, None, "throttled", answer.error, _pause(answer, THROTTLED_SECONDS), "channel")
    if answer.status == 404:
        return Verdict(Outcome.FAILED, None, "not_found", answer.error)
    if 400 <= answer.status < 500:
        return Verdict(Outcome.FAILED, None, "refused", answer.error)
    return broken(answer.error)


def _pause(answer: Answer, otherwise: float) -> float:
    return pause_of(next((value for name, value in answer.headers if name == "retry-after"), None), otherwise)
