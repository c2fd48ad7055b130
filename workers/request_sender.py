"""The request sender of a worker process: sends mail whose rows ask for one request each."""

from __future__ import annotations

from dataclasses import replace

from app.domain.work.request_attempts import Dispatch, Outcome
from app.outbound import Answer, Reason, failed
from workers.fair_dispatcher import FairDispatcher


class RequestSender(FairDispatcher[Dispatch, Outcome]):
    """A fair dispatcher that sends one request for each row. Its outcomes hold the answers."""

    def send(self, dispatch: Dispatch) -> None:
        """Starts sending the request once."""
        answered = self.ask_any(dispatch.request)
        answered.add_done_callback(lambda done: self._receive(dispatch, done.result()))

    def broken(self, outcome: Outcome) -> Outcome:
        """Returns the outcome with a failed answer in place of the one that could not be recorded."""
        return replace(outcome, answer=failed(Reason.BAD_ADDRESS, "The response could not be recorded."))

    def _receive(self, dispatch: Dispatch, answer: Answer) -> None:
        self.note(Outcome(dispatch, answer, self.faults.pause() if answer.is_ours else 0.0))
