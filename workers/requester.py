"""The requester of a worker process: keeps the requests of runs under way, those of many workspaces at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from app.channels.base import Request
from app.domain.automations import http_requests
from app.domain.automations.http_requests import Dispatch, Outcome
from app.mailbox import Claimed
from app.outbound import Answer, Reason, failed
from workers.fair_desk import FairDesk

MOST_UNDER_WAY = 400
MOST_EACH = 20


class Requester(FairDesk[Outcome]):
    """A request whose worker dies is sent again by another one when its lease ends. The owners are workspaces."""

    def __init__(self) -> None:
        super().__init__(http_requests.MAIL, http_requests.TIMEOUT_SECONDS, MOST_UNDER_WAY, MOST_EACH)

    def begin(self, rooms: Mapping[str, int]) -> tuple[Iterable[Claimed], Iterable[str]]:
        """Claims requests whose run waits for them, and sends them."""
        dispatches, full = http_requests.claim(rooms)
        if dispatches:
            self.loop.call_soon_threadsafe(self._send, dispatches)
        return [dispatch.claimed for dispatch in dispatches], full

    def record(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Hands responses to their runs; returns those that have to be recorded later."""
        return http_requests.record(outcomes)

    def broken(self, outcome: Outcome) -> Outcome:
        """The run learns that there was no response."""
        return replace(outcome, answer=failed(Reason.BAD_ADDRESS, "The response could not be recorded."))

    def claimed(self, outcome: Outcome) -> Claimed:
        """The request's row."""
        return outcome.dispatch.claimed

    def _send(self, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            request = Request(dispatch.method, dispatch.address, dispatch.headers, dispatch.body)
            self.attempt(
                request, partial(self._note, dispatch), http_requests.MOST_BYTES, http_requests.TIMEOUT_SECONDS
            )

    def _note(self, dispatch: Dispatch, answer: Answer, pause_seconds: float) -> None:
        self.note(Outcome(dispatch, answer, pause_seconds))
