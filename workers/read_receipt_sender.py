"""The read receipt sender of a worker process: tells providers what members have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from app.domain.conversations import read_receipts
from app.domain.conversations.read_receipts import Dispatch, Outcome
from app.mailbox import Claimed
from app.outbound import Answer, Reason, failed
from workers.fair_desk import FairDesk

MOST_UNDER_WAY = 100
MOST_EACH = 10
# Of a provider's response.
MOST_BYTES = 4_096


class Reader(FairDesk[Outcome]):
    """A receipt whose worker dies is sent again by another one when its lease ends. The owners are channels."""

    def __init__(self) -> None:
        super().__init__(read_receipts.MAIL, read_receipts.TIMEOUT_SECONDS, MOST_UNDER_WAY, MOST_EACH)

    def begin(self, rooms: Mapping[str, int]) -> tuple[Iterable[Claimed], Iterable[str]]:
        """Claims receipts that can be sent, and sends them."""
        dispatches, full = read_receipts.claim(rooms)
        if dispatches:
            self.loop.call_soon_threadsafe(self._send, dispatches)
        return [dispatch.claimed for dispatch in dispatches], full

    def record(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Records what came of receipts; none has to be recorded later."""
        read_receipts.record(outcomes)
        return ()

    def broken(self, outcome: Outcome) -> Outcome:
        """The receipt is given up."""
        return replace(outcome, answer=failed(Reason.BAD_ADDRESS, "The response could not be recorded."))

    def claimed(self, outcome: Outcome) -> Claimed:
        """The receipt's row."""
        return outcome.dispatch.claimed

    def _send(self, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            note = partial(self._note, dispatch)
            self.attempt(dispatch.request, note, MOST_BYTES, read_receipts.TIMEOUT_SECONDS)

    def _note(self, dispatch: Dispatch, answer: Answer, pause_seconds: float) -> None:
        self.note(Outcome(dispatch, answer, pause_seconds))
