"""Attempts of mail whose rows each need one request: their outcomes, and when to try again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app import mailbox
from app.channels.base import Request
from app.lib import clock
from app.mailbox import Claimed, PutOff, Waiting
from app.outbound import Answer


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed row with its request."""

    claimed: Claimed
    request: Request


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt. After a fault on our side, the next attempt is in `pause_seconds`."""

    dispatch: Dispatch
    answer: Answer
    pause_seconds: float = 0.0

    @property
    def claimed(self) -> Claimed:
        """The claimed row."""
        return self.dispatch.claimed

    def next_attempt_seconds(self, pauses_seconds: Sequence[float]) -> float | None:
        """Returns the seconds until the next attempt; None if the outcome is final.

        They come from `pauses_seconds`, but the server may ask for more. After a fault on our side: `pause_seconds`.
        """
        answer, tries = self.answer, int(self.claimed.carried.tries)
        if answer.is_ours:
            return self.pause_seconds
        may_pass = answer.status is None or answer.status == 429 or answer.status >= 500
        is_final = not may_pass or answer.error_code == "private_address"
        if is_final or tries >= len(pauses_seconds):
            return None
        return max(pauses_seconds[tries], answer.asked_pause_seconds(clock.now()))


def put_off(waiting: Waiting, outcomes: Sequence[Outcome], pauses_seconds: Sequence[float]) -> list[Outcome]:
    """Schedules further attempts; returns the outcomes that are final. Rows must carry `tries`."""
    final, again = [], []
    for outcome in outcomes:
        seconds = outcome.next_attempt_seconds(pauses_seconds)
        if seconds is None:
            final.append(outcome)
        else:
            again.append(PutOff(outcome.claimed, seconds, is_spent=not outcome.answer.is_ours))
    mailbox.put_off(waiting, again)
    return final
