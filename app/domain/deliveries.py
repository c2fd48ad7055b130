"""Deliveries: an event on its way to an endpoint, from its first attempt to its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from cryptography.fernet import InvalidToken

from app import mailbox, sql
from app.config import settings
from app.database import count, rows, transaction
from app.domain import stops
from app.errors import NotFound
from app.lib import clock, ids, signatures, vault
from app.mailbox import Claimed, Mail
from app.models.deliveries import Attempt, Delivery
from app.models.endpoints import Endpoint
from app.models.events import Event
from app.outbound import Answer

log = structlog.get_logger(__name__)

MAIL = Mail(
    table="deliveries",
    owner="endpoint_id",
    queue="deliveries",
    order="due_at",
    guard="EXISTS (SELECT FROM endpoints WHERE endpoints.id = mail.endpoint_id AND endpoints.state = 'active')",
)


# A lease lasts for an attempt, and for this long to record it. One that ends sooner only means a second attempt.
RECORDING_SECONDS = 5

# What becomes of unfinished deliveries: the state of their endpoint, their status then, which they are, their order.
_ENDINGS = (
    ("stopped", "held", "due_at IS NOT NULL", "due_at"),
    ("deleted", "cancelled", "status IN ('pending', 'held')", "id"),
)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed delivery with all that one attempt needs."""

    claimed: Claimed
    kind: str
    step: int  # attempts made on the present schedule
    trace_id: str
    address: str
    secrets: tuple[str, ...]
    body: bytes

    def headers(self) -> dict[str, str]:
        """The headers of an attempt that is made now (public API, part 6)."""
        return {
            "Content-Type": "application/json",
            "User-Agent": "Bellhop-Webhooks/1",
            "X-Service-Delivery": self.claimed.id,
            "X-Service-Signature": signatures.sign(self.secrets, int(clock.now().timestamp()), self.body),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """A completed attempt."""

    dispatch: Dispatch
    at: datetime
    answer: Answer


def create(workspace_id: str, wanted: Sequence[tuple[str, str, Endpoint]]) -> None:
    """A delivery for each event, given by its identifier and kind, to its endpoint; to a stopped one it is held."""
    count(
        """
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at)
        SELECT new.id, %s, new.event_id, new.endpoint_id, new.kind, new.status,
            CASE new.status WHEN 'pending' THEN now() END
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
            AS new(id, event_id, endpoint_id, kind, status)
        """,
        (
            workspace_id,
            [ids.new("dlv") for _ in wanted],
            [event_id for event_id, _, _ in wanted],
            [endpoint.id for _, _, endpoint in wanted],
            [kind for _, kind, _ in wanted],
            ["pending" if endpoint.state == "active" else "held" for _, _, endpoint in wanted],
        ),
    )


def ring(endpoint_id: str) -> None:
    mailbox.ring(MAIL, endpoint_id)


def claim(rooms: Mapping[str, int]) -> list[Dispatch]:
    """Takes up to so many due deliveries of each endpoint that is active."""
    lease_seconds = settings().webhook_timeout_seconds + RECORDING_SECONDS
    claimed = {row.id: row for row in mailbox.claim(MAIL, rooms, lease_seconds)}
    if not claimed:
        return []
    details = rows(
        """
        SELECT deliveries.id, deliveries.kind, deliveries.step, events.trace_id, endpoints.address, events.body,
            endpoints.secret, CASE WHEN endpoints.previous_secret_until > now() THEN endpoints.previous_secret END
        FROM deliveries JOIN events ON events.id = deliveries.event_id
        JOIN endpoints ON endpoints.id = deliveries.endpoint_id
        WHERE deliveries.id = ANY(%s)
        """,
        (list(claimed),),
    )
    dispatches = {row[0]: _dispatch(claimed[row[0]], *row[1:]) for row in details}
    return [dispatch for id in claimed if (dispatch := dispatches.get(id))]


def record(outcomes: Sequence[Outcome]) -> None:
    """Logs the attempts, moves their deliveries on, and counts the endpoints' failures, in one transaction.

    Safe to repeat: an outcome is recorded under the claim it was made with, once.
    """
    moves = [_next(outcome) for outcome in outcomes]
    with transaction():
        recorded = set(rows(sql.load("record_attempts"), _columns(outcomes, moves)))
        fresh = [o for o in outcomes if _claim_of(o) in recorded]
        states = stops.count_outcomes([(o.dispatch.claimed.owner, o.answer) for o in fresh])
        if "stopped" in states.values():
            end_unfinished()
    for outcome, (status, _) in zip(outcomes, moves, strict=True):
        _log_attempt(outcome, status if _claim_of(outcome) in recorded else "stale")


def end_unfinished(limit: int = 1000) -> int:
    """Holds what is on its way to a stopped endpoint, cancels what was meant for a deleted one; returns how many.

    At most `limit` for each state, so that a long queue ends in small transactions. The claim stays, so that an
    attempt under way can still record what came of it.
    """
    return sum(_end(*ending, limit) for ending in _ENDINGS)


def find(workspace_id: str, delivery_id: str) -> Delivery:
    """Raises NotFound."""
    delivery = None
    if ids.is_id(delivery_id, "dlv"):
        delivery = Delivery.in_workspace(workspace_id).where(Delivery.id == delivery_id).first()
    if delivery is None:
        raise NotFound()
    return delivery  # type: ignore[no-any-return]


def represent(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "event_id": delivery.event_id,
        "endpoint_id": delivery.endpoint_id,
        "kind": delivery.kind,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "next_attempt_at": delivery.due_at,
        "last_error": delivery.last_error,
        "created_at": delivery.created_at,
        "delivered_at": delivery.delivered_at,
        "resent_from": delivery.resent_from,
    }


def represent_whole(delivery: Delivery) -> dict[str, Any]:
    """With the body, as text, and every attempt."""
    event = Event.get_or_none(Event.id == delivery.event_id)
    return represent(delivery) | {
        "body": bytes(event.body).decode() if event else None,
        "attempts_log": [
            {
                "number": attempt.number,
                "at": attempt.at,
                "duration_ms": attempt.duration_ms,
                "status": attempt.status,
                "error": attempt.error,
                "response_body": attempt.response_body,
                "trigger": attempt.trigger,
            }
            for attempt in Attempt.of(delivery.id)
        ],
    }


def _dispatch(
    claimed: Claimed, kind: str, step: int, trace_id: str, address: str, body: bytes, *sealed_secrets: bytes | None
) -> Dispatch | None:
    keys = settings().secret_keys
    try:
        secrets = tuple(vault.decrypt(keys, bytes(sealed)) for sealed in sealed_secrets if sealed)
    except InvalidToken:
        # The operator's mistake, not the receiver's: nothing is counted, and it is tried again when the lease ends.
        log.error("delivery.secret_unreadable", delivery=claimed.id, endpoint=claimed.owner, remedy="check SECRET_KEY")
        return None
    return Dispatch(claimed, kind, step, trace_id, address, secrets, bytes(body))


def _claim_of(outcome: Outcome) -> tuple[str, int]:
    return outcome.dispatch.claimed.id, outcome.dispatch.claimed.claim


def _next(outcome: Outcome) -> tuple[str, float | None]:
    """The status that follows, and in how many seconds to try again; of an endpoint that stops it is held after all."""
    schedule, step = settings().retry_schedule_seconds, outcome.dispatch.step
    if outcome.answer.ok:
        return "delivered", None
    if outcome.answer.status == 410 or step >= len(schedule):
        return "failed", None
    return "pending", schedule[step]


def _columns(outcomes: Sequence[Outcome], moves: Sequence[tuple[str, float | None]]) -> dict[str, list[Any]]:
    return {
        "ids": [o.dispatch.claimed.id for o in outcomes],
        "claims": [o.dispatch.claimed.claim for o in outcomes],
        "statuses": [status for status, _ in moves],
        "due_in": [due_in for _, due_in in moves],
        "errors": [o.answer.error for o in outcomes],
        "ats": [o.at for o in outcomes],
        "durations": [o.answer.duration_ms for o in outcomes],
        "codes": [o.answer.status for o in outcomes],
        # PostgreSQL's text holds no NUL; a receiver may send what it likes.
        "bodies": [o.answer.body.decode("utf-8", "replace").replace("\0", "\ufffd") for o in outcomes],
    }


def _end(state: str, status: str, unfinished: str, order: str, limit: int) -> int:
    return count(
        f"""
        WITH ending AS (
            SELECT own.id FROM endpoints CROSS JOIN LATERAL (
                SELECT id FROM deliveries WHERE endpoint_id = endpoints.id AND {unfinished}
                ORDER BY {order} LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
            ) AS own
            WHERE endpoints.state = %(state)s AND endpoints.state <> 'active'
            LIMIT %(limit)s
        )
        UPDATE deliveries SET status = %(status)s, due_at = NULL FROM ending WHERE deliveries.id = ending.id
        """,
        {"state": state, "status": status, "limit": limit},
    )


def _log_attempt(outcome: Outcome, status: str) -> None:
    dispatch, answer = outcome.dispatch, outcome.answer
    log.info(
        "delivery.attempt",
        request_id=dispatch.trace_id,
        delivery=dispatch.claimed.id,
        endpoint=dispatch.claimed.owner,
        kind=dispatch.kind,
        number=dispatch.step + 1,
        code=answer.status,
        error=answer.error,
        duration_ms=answer.duration_ms,
        status=status,
    )
