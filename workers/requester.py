"""The requester of a worker process: sends mail whose rows ask for one request each, that of many owners at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from app.domain.work.request_attempts import Dispatch, Outcome
from app.mailbox import Found, Mail
from app.outbound import Answer, Reason, failed
from workers.fair_desk import FairDesk


class Requests(Protocol):
    """The module of a kind of such mail. `MOST_BYTES` is how much of an answer is read."""

    MAIL: Mail
    TIMEOUT_SECONDS: float
    MOST_BYTES: int
    MOST_UNDER_WAY: int
    MOST_EACH: int

    def claim(self, rooms: Mapping[str, int]) -> Found[Dispatch, Outcome]:
        """Claims up to that many rows of each owner."""

    def record(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Records outcomes; returns those that have to be recorded later."""


class Requester(FairDesk[Dispatch, Outcome]):
    """A request whose worker dies is sent again by another one when its lease ends."""

    def __init__(self, requests: Requests) -> None:
        super().__init__(requests.MAIL, requests.TIMEOUT_SECONDS, requests.MOST_UNDER_WAY, requests.MOST_EACH)
        self._requests = requests

    def claim(self, rooms: Mapping[str, int]) -> Found[Dispatch, Outcome]:
        """Claims rows with their requests."""
        return self._requests.claim(rooms)

    def send(self, dispatch: Dispatch) -> None:
        """Sends the request once."""
        answered = self.ask_any(dispatch.request, self._requests.MOST_BYTES, self._requests.TIMEOUT_SECONDS)
        answered.add_done_callback(lambda done: self._receive(dispatch, done.result()))

    def record(self, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Records the answers; returns those that have to be recorded later."""
        return self._requests.record(outcomes)

    def broken(self, outcome: Outcome) -> Outcome:
        """As if there had been no answer."""
        return replace(outcome, answer=failed(Reason.BAD_ADDRESS, "The response could not be recorded."))

    def _receive(self, dispatch: Dispatch, answer: Answer) -> None:
        self.note(Outcome(dispatch, answer, self.faults.pause() if answer.is_ours else 0.0))
