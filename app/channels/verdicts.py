"""The verdicts that do not depend on the provider: no answer, an unreadable one, a fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from app.channels.base import Outcome, Verdict
from app.lib import json
from app.outbound import Answer

# The pause after a failed connection, or if an answer asks for a retry without a time.
PAUSE_SECONDS = 5.0


def document_of(answer: Answer) -> dict[str, Any]:
    """Returns the JSON object in the body; {} if there is none."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def unanswered(answer: Answer) -> Verdict:
    """Returns the verdict without an answer: UNKNOWN if the request may have arrived, else LATER."""
    if answer.may_have_arrived:
        return _unknown("no_answer", answer.error)
    return Verdict(Outcome.LATER, None, "unreachable", answer.error, PAUSE_SECONDS, "channel")


def unreadable(provider: str) -> Verdict:
    """Returns the verdict on a successful answer that does not say what was done."""
    return _unknown("unreadable", f"{provider}'s answer could not be read.")


def broken(detail: str | None, *, pauses: Literal["channel", "conversation"] = "channel") -> Verdict:
    """Returns the verdict on a provider's fault: the request may or may not have been accepted."""
    return _unknown("provider_error", detail, pauses)


def repeatable(verdict: Verdict) -> Verdict:
    """Returns the verdict on a request that is safe to repeat: UNKNOWN becomes LATER."""
    return replace(verdict, outcome=Outcome.LATER) if verdict.outcome is Outcome.UNKNOWN else verdict


def _unknown(code: str, detail: str | None, pauses: Literal["channel", "conversation"] = "channel") -> Verdict:
    return Verdict(Outcome.UNKNOWN, code=code, detail=detail, pause_seconds=PAUSE_SECONDS, pauses=pauses)
