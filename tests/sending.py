"""What tests of deliveries share: answers of receivers, and attempts made without a receiver."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from app import database
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.attempts import Dispatch, Outcome
from app.lib import clock, ids
from app.models.endpoints import Endpoint
from app.outbound import Answer, Reason, answered, failed
from tests.cast import all_of, short_slices

OK = answered(204, b"", 12)
BROKEN = answered(500, b"oops", 7)
GONE = answered(410, b"", 3)
SILENT = failed(Reason.LATE, "10 seconds", 10_000)
FAULT = failed(Reason.RESOLVER, "shop.example", 20)


def take(endpoint: Endpoint, room: int = 100) -> list[Dispatch]:
    """Claims what is there, whenever it is due; one probe if the endpoint is being probed."""
    # Rows that another transaction has locked are skipped, as the product does, so that nobody waits in a circle.
    database.rows(
        "UPDATE deliveries SET due_at = now(), next_attempt_at = NULL, leased_until = now() WHERE id = ANY(ARRAY("
        " SELECT id FROM deliveries WHERE coalesce(due_at, next_attempt_at) IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED))"
    )
    database.rows("UPDATE endpoints SET probe_at = now() WHERE probe_at IS NOT NULL")
    return attempts.claim(lanes.FAST, {endpoint.id: room}) or attempts.claim_restrained(lanes.FAST, {endpoint.id: 1})[0]


def outcome(dispatch: Dispatch, answer: Answer, pause_seconds: float = 0.0) -> Outcome:
    return Outcome(dispatch, clock.now(), answer, pause_seconds)


def record(dispatches: list[Dispatch], answer: Answer) -> list[Outcome]:
    """Records the same answer to each; returns the outcomes that have to be recorded later."""
    return attempts.record([outcome(dispatch, answer) for dispatch in dispatches])


def record_all(outcomes: list[Outcome]) -> None:
    """Records them as the dispatcher does: those that somebody else has locked in a later round."""
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


def make(endpoint: Endpoint, number: int, status: str = "failed", *, body: bool = True, **fields: Any) -> list[str]:
    """So many deliveries of one event, oldest first."""
    event_id = ids.new("evt")
    if body:
        database.rows(
            "INSERT INTO events (id, workspace_id, kind, trace_id, body, created_at)"
            " VALUES (%s, %s, 'contact.created', '', '{}', now())",
            (event_id, endpoint.workspace_id),
        )
    made = [ids.new("dlv") for _ in range(number)]
    columns = {"kind": "contact.created", "attempts": 0, "tries": 0, "last_error": None, "created_at": clock.now()}
    columns |= fields
    database.rows(
        f"""
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, status, due_at, {", ".join(columns)})
        SELECT id, %s, %s, %s, %s, CASE WHEN %s = 'pending' THEN now() END, {", ".join(["%s"] * len(columns))}
        FROM unnest(%s::text[]) AS id
        """,
        (endpoint.workspace_id, event_id, endpoint.id, status, status, *columns.values(), made),
    )
    return made


def set_state(endpoint: Endpoint, state: str) -> None:
    Endpoint.update(state=state).where(Endpoint.id == endpoint.id).execute()


@contextmanager
def locked(*delivery_ids: str) -> Iterator[None]:
    """Another transaction has locked these, as who records an attempt does, until the block ends."""
    ready, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with database.transaction():
            database.rows("UPDATE deliveries SET claim = claim + 1 WHERE id = ANY(%s)", (list(delivery_ids),))
            ready.set()
            leave.wait(20)
        database.database.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert ready.wait(20)
    try:
        with short_slices():
            yield
    finally:
        leave.set()
        thread.join(20)
