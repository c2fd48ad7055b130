"""Attempts of mail whose rows ask for one request each: what came of them, and when the next ones follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app import mailbox
from app.channels.base import Request
from app.mailbox import Claimed, PutOff, Waiting
from app.outbound import Answer


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed row with its request."""

    claimed: Claimed
    request: Request


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attempt. After a fault of ours the next one follows in `pause_seconds`."""

    dispatch: Dispatch
    answer: Answer
    pause_seconds: float = 0.0

    @property
    def claimed(self) -> Claimed:
        """The row."""
        return self.dispatch.claimed

    def next_attempt_seconds(self, pauses_seconds: Sequence[float]) -> float | None:
        """In how many seconds to try again, with these pauses between attempts; None if the answer is final."""
        answer, tries = self.answer, self.claimed.carried.tries
        if answer.is_ours:
            return self.pause_seconds
        may_pass = answer.status is None or answer.status == 429 or answer.status >= 500
        is_final = not may_pass or answer.error_code == "private_address"
        return None if is_final or tries >= len(pauses_seconds) else pauses_seconds[tries]


def put_off(waiting: Waiting, outcomes: Sequence[Outcome], pauses_seconds: Sequence[float]) -> list[Outcome]:
    """Puts off what is tried again; returns the outcomes that are final. The rows carry their `tries`."""
    final, again = [], []
    for outcome in outcomes:
        seconds = outcome.next_attempt_seconds(pauses_seconds)
        if seconds is None:
            final.append(outcome)
        else:
            again.append(PutOff(outcome.claimed, seconds, is_spent=not outcome.answer.is_ours))
    mailbox.put_off(waiting, again)
    return final
