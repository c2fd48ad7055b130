"""What tests of deliveries share: answers of receivers, and attempts made without a receiver."""

from __future__ import annotations

from app import database
from app.domain import attempts, lanes
from app.domain.attempts import Dispatch, Outcome
from app.lib import clock
from app.models.endpoints import Endpoint
from app.outbound import Answer, Reason, answered, failed
from tests.cast import all_of

OK = answered(204, b"", 12)
BROKEN = answered(500, b"oops", 7)
GONE = answered(410, b"", 3)
SILENT = failed(Reason.LATE, "10 seconds", 10_000)
FAULT = failed(Reason.RESOLVER, "shop.example", 20)


def take(endpoint: Endpoint, room: int = 100) -> list[Dispatch]:
    """Claims what is there, whenever it is due; one probe if the endpoint is being probed."""
    database.rows(
        "UPDATE deliveries SET due_at = now(), next_attempt_at = NULL, leased_until = now()"
        " WHERE coalesce(due_at, next_attempt_at) IS NOT NULL"
    )
    database.rows("UPDATE endpoints SET probe_at = now() WHERE probe_at IS NOT NULL")
    return attempts.claim(lanes.FAST, {endpoint.id: room}) or attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]


def outcome(dispatch: Dispatch, answer: Answer, pause_seconds: float = 0.0) -> Outcome:
    return Outcome(dispatch, clock.now(), answer, pause_seconds)


def record(dispatches: list[Dispatch], answer: Answer) -> list[Outcome]:
    """Records the same answer to each; returns the outcomes that have to be recorded later."""
    return attempts.record([outcome(dispatch, answer) for dispatch in dispatches])


def record_all(outcomes: list[Outcome]) -> None:
    """Records them as the desk does: those that somebody else has locked in a later round."""
    while outcomes:
        outcomes = attempts.record(outcomes)


def attempt(endpoint: Endpoint, answer: Answer) -> None:
    """One attempt at everything that is there; at one delivery if the endpoint is being probed."""
    record(take(endpoint), answer)


def states() -> list[str]:
    """The states of all deliveries, oldest first."""
    return all_of("SELECT status FROM deliveries ORDER BY id")


def failures(endpoint: Endpoint) -> int:
    """The endpoint's failures in a row, as they are stored."""
    return int(Endpoint.get_by_id(endpoint.id).consecutive_failures)


def set_failures(endpoint: Endpoint, number: int) -> None:
    """As if so many attempts in a row had failed, without probing."""
    Endpoint.update(consecutive_failures=number).where(Endpoint.id == endpoint.id).execute()
