"""Deliveries: an event on its way to an endpoint, from its first attempt to its last."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from cryptography.fernet import InvalidToken

from app import logs, mailbox, metrics, sql
from app.config import settings
from app.database import batches, count, database, rows, transaction
from app.domain import audit, lanes, resends, stops
from app.domain.changes import Change, Effect
from app.errors import Conflict
from app.lib import clock, signatures, vault
from app.mailbox import Claimed, Mail
from app.models.deliveries import Attempt, Delivery
from app.models.endpoints import Endpoint
from app.models.events import Event
from app.outbound import Answer

log = structlog.get_logger(__name__)

# Never more than so many attempts at an endpoint have gone out since it last answered, beyond those that stop it.
BEYOND_STOP = 10
# What is under way is found among so many that have been due for longest. They are taken in that order, and behind them
# it can only come to lie by what a transaction of a sweep or of jobs, under way when it was taken, makes due before it.
HEAD = 1_000

BODY_GONE = (
    "The body of this event is gone: bodies are kept for a time, and this one's is over. It cannot be sent again."
)


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A delivery to be made. `contact_id`: whose data its body has, if anybody's."""

    id: str
    event_id: str
    kind: str
    contact_id: str | None
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed delivery with all that one attempt needs."""

    claimed: Claimed
    kind: str
    step: int  # attempts made on the present schedule
    trace_id: str
    address: str
    answered: bool  # whether the endpoint has succeeded since it last failed
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


def create(workspace_id: str, wanted: Sequence[NewDelivery]) -> None:
    """Writes the deliveries down; to a stopped endpoint they are held."""
    count(
        """
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, contact_id, status, due_at)
        SELECT new.id, %s, new.event_id, new.endpoint_id, new.kind, new.contact_id, new.status,
            CASE new.status WHEN 'pending' THEN now() END
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
            AS new(id, event_id, endpoint_id, kind, contact_id, status)
        """,
        (
            workspace_id,
            [each.id for each in wanted],
            [each.event_id for each in wanted],
            [each.endpoint.id for each in wanted],
            [each.kind for each in wanted],
            [each.contact_id for each in wanted],
            ["pending" if each.endpoint.state == "active" else "held" for each in wanted],
        ),
    )


def claim(lane: Mail, rooms: Mapping[str, int], answering: Collection[str] = ()) -> list[Dispatch]:
    """Takes up to so many due deliveries of each endpoint that is active and in that lane.

    Of an endpoint that is not among `answering`, those that are known to have answered lately, all workers together
    never have so much under way that more than `BEYOND_STOP` attempts beyond those that stop it could fail.
    """
    lease_seconds = lanes.lease_seconds()
    if unsure := sorted(rooms.keys() - set(answering)):
        with transaction():
            allowed = _allowances(unsure)
            rooms = {endpoint_id: min(room, allowed.get(endpoint_id, room)) for endpoint_id, room in rooms.items()}
            claimed = mailbox.claim(lane, rooms, lease_seconds)
    else:
        claimed = mailbox.claim(lane, rooms, lease_seconds)
    return _dispatches(claimed)


def record(outcomes: Sequence[Outcome]) -> None:
    """Logs the attempts, moves their deliveries on, and counts the endpoints' failures, in one transaction.

    Safe to repeat: an outcome is recorded under the claim it was made with, once.
    """
    if not outcomes:
        return
    moves = [_next(outcome) for outcome in outcomes]
    owners = {o.dispatch.claimed.owner for o in outcomes}
    failing = {o.dispatch.claimed.owner for o in outcomes if not o.answer.ok}
    if failing:
        with transaction():
            # Before the attempts are recorded, so that none is put off for an endpoint that is stopped meanwhile.
            endpoints = {endpoint.id: endpoint for endpoint in Endpoint.locked(failing, owners)}
            states = {
                endpoint_id: endpoints[endpoint_id].state if endpoint_id in endpoints else "deleted"
                for endpoint_id in failing
            }
            stale = _record(outcomes, moves, owners - failing, states)
            fresh = [(o.dispatch.claimed.owner, o.answer) for o in outcomes if _claim_of(o) not in stale]
            stops.count_outcomes([endpoints[each] for each in sorted(failing & endpoints.keys())], fresh)
    else:
        stale = _record(outcomes, moves, owners, {})
    statuses = ["stale" if _claim_of(o) in stale else status for o, (status, _) in zip(outcomes, moves, strict=True)]
    _log_attempts(outcomes, statuses)
    for seconds in {due_in for _, due_in in moves if due_in is not None}:
        lanes.ring_later(seconds)


def resend(change: Change) -> Effect:
    """Sends the delivery `delivery_id` once more, at once and as a new one where it was delivered before.

    Raises NotFound, and Conflict for one that is on its way already or cannot go out.
    """
    delivery_id = change.payload["delivery_id"]
    rows("SELECT FROM deliveries WHERE id = %s FOR NO KEY UPDATE", (delivery_id,))
    delivery = find_resendable(change.workspace_id, delivery_id)
    if delivery.status == "pending":
        raise Conflict("This delivery is already on its way.")
    endpoint = Endpoint.in_workspace(change.workspace_id).where(Endpoint.id == delivery.endpoint_id).first()
    if endpoint is None:
        raise Conflict("The endpoint of this delivery was deleted.")
    if endpoint.state != "active":
        raise Conflict("The endpoint of this delivery is stopped. Enable it first.")
    [sent_as] = resends.send_again([resends.Resent(delivery.id, delivery.status)])
    database.after_commit(partial(mailbox.ring, lanes.of(endpoint.slow_until), endpoint.id))
    audit.record(change, "delivery", delivery.id, {"endpoint_id": endpoint.id, "sent_as": sent_as}, endpoint.id)
    return Effect("changed" if sent_as == delivery.id else "made", "delivery", sent_as)


def find_resendable(workspace_id: str, delivery_id: str) -> Delivery:
    """Raises NotFound, and Conflict for a delivery that can never be sent again."""
    delivery = find(workspace_id, delivery_id)
    if delivery.status == "cancelled":
        raise Conflict("This delivery was cancelled because its endpoint was deleted.")
    if not Event.select().where(Event.id == delivery.event_id).exists():
        raise Conflict(BODY_GONE)
    return delivery


def find(workspace_id: str, delivery_id: str) -> Delivery:
    """Raises NotFound."""
    return Delivery.get_in(workspace_id, delivery_id, "dlv")


def represent(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "event_id": delivery.event_id,
        "endpoint_id": delivery.endpoint_id,
        "kind": delivery.kind,
        "status": delivery.status,
        "attempts": delivery.attempts,
        # While an attempt is under way it is the end of its lease, which may come without an outcome.
        "next_attempt_at": delivery.due_at and max(delivery.due_at, delivery.leased_until or delivery.due_at),
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
        "attempts_log": [_represent_attempt(attempt) for attempt in Attempt.of(delivery.id)],
    }


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """The deliveries that speak of a contact, oldest first, with every attempt, some at a time."""
    for batch in batches("SELECT id FROM deliveries WHERE contact_id = %s ORDER BY id", (contact_id,)):
        attempts = defaultdict(list)
        for attempt in Attempt.of(*batch):
            attempts[attempt.delivery_id].append(_represent_attempt(attempt))
        for delivery in Delivery.select().where(Delivery.id.in_(batch)).order_by(Delivery.id):
            yield represent(delivery) | {"attempts_log": attempts[delivery.id]}


def erase_contact(contact_id: str) -> None:
    """Takes what receivers answered to a contact's deliveries out of the log, and where they sent us.

    That of attempts under way too: they count no more, and are made again with what is left. Call it before the bodies
    are erased; until the transaction ends nobody else takes these deliveries.
    """
    count(
        """
        UPDATE deliveries SET leased_until = NULL
        WHERE contact_id = %s AND (due_at IS NOT NULL OR leased_until IS NOT NULL)
        """,
        (contact_id,),
    )
    without_address = r"regexp_replace({0}, '^(Redirects are not followed \(\d+) to .*\)\.$', '\1).')"
    count(
        f"""
        UPDATE deliveries SET last_error = {without_address.format("last_error")}
        WHERE contact_id = %s AND last_error LIKE 'Redirects %%'
        """,
        (contact_id,),
    )
    count(
        f"""
        UPDATE attempts SET response_body = NULL, error = {without_address.format("error")}
        WHERE delivery_id IN (SELECT id FROM deliveries WHERE contact_id = %s)
            AND (response_body IS NOT NULL OR error LIKE 'Redirects %%')
        """,
        (contact_id,),
    )


def _represent_attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "at": attempt.at,
        "duration_ms": attempt.duration_ms,
        "status": attempt.status,
        "error": attempt.error,
        "response_body": attempt.response_body,
        "trigger": attempt.trigger,
    }


def _allowances(endpoint_ids: Sequence[str]) -> dict[str, int]:
    """How many more may be taken of those that have not answered since they last failed.

    Keeps others from taking of these meanwhile, until the transaction ends.
    """
    locked = "SELECT id FROM endpoints WHERE id = ANY(%s) AND NOT answered ORDER BY id FOR NO KEY UPDATE"
    if not (failing := [id for (id,) in rows(locked, (endpoint_ids,))]):
        return {}
    # A statement of its own, so that it sees what those have taken who had the lock before.
    allowed = rows(
        """
        SELECT id, greatest(0, %s - consecutive_failures - (
            SELECT count(*) FROM (
                SELECT leased_until FROM deliveries WHERE endpoint_id = endpoints.id AND due_at <= now()
                ORDER BY due_at LIMIT %s) AS head
            WHERE leased_until > now()))
        FROM endpoints WHERE id = ANY(%s)
        """,
        (settings().stop_after_failures + BEYOND_STOP, HEAD, failing),
    )
    return dict(allowed)


def _dispatches(claimed: Sequence[Claimed]) -> list[Dispatch]:
    if not claimed:
        return []
    endpoints = _by_id("find_targets", {row.owner for row in claimed})
    events = _by_id("find_bodies", {row.carried[0] for row in claimed})
    if bodiless := [row for row in claimed if row.carried[0] not in events]:
        _give_up(bodiless)
    dispatches = [
        _dispatch(row, events[row.carried[0]], endpoints[row.owner])
        for row in claimed
        if row.carried[0] in events and row.owner in endpoints
    ]
    return [dispatch for dispatch in dispatches if dispatch]


def _by_id(query: str, wanted: Collection[str]) -> dict[str, Sequence[Any]]:
    ids = {"ids": sql.array(wanted), "first_id": min(wanted), "last_id": max(wanted)}
    return {row[0]: row[1:] for row in rows(sql.prepared(query), ids)}


def _give_up(bodiless: Sequence[Claimed]) -> None:
    count(
        """
        UPDATE deliveries SET status = 'failed', due_at = NULL, leased_until = NULL, last_error = %s
        FROM unnest(%s::text[], %s::int[]) AS gone(id, claim)
        WHERE deliveries.id = gone.id AND deliveries.claim = gone.claim
        """,
        (BODY_GONE, [row.id for row in bodiless], [row.claim for row in bodiless]),
    )
    log.warning("delivery.body_gone", deliveries=[row.id for row in bodiless])


def _dispatch(claimed: Claimed, event: Sequence[Any], endpoint: Sequence[Any]) -> Dispatch | None:
    _, kind, step = claimed.carried
    trace_id, body = event
    address, answered, *sealed_secrets = endpoint
    keys = settings().secret_keys
    try:
        secrets = tuple(vault.decrypt(keys, bytes(sealed)) for sealed in sealed_secrets if sealed)
    except InvalidToken:
        # The operator's mistake, not the receiver's: nothing is counted, and it is tried again when the lease ends.
        log.error("delivery.secret_unreadable", delivery=claimed.id, endpoint=claimed.owner, remedy="check SECRET_KEY")
        return None
    return Dispatch(claimed, kind, step, trace_id, address, answered, secrets, body.encode())


def _record(
    outcomes: Sequence[Outcome],
    moves: Sequence[tuple[str, int | None]],
    answering: Collection[str],
    states: Mapping[str, str],
) -> set[tuple[str, int]]:
    """Returns the claims under which nothing was recorded any more."""
    columns = _columns(outcomes, moves)
    columns["states"] = [states.get(o.dispatch.claimed.owner, "active") for o in outcomes]
    parameters = {name: sql.array(values) for name, values in columns.items()}
    parameters["answering"] = sql.array(answering)
    parameters |= {"first_id": min(columns["ids"]), "last_id": max(columns["ids"])}
    return set(rows(sql.prepared("record_attempts"), parameters))


def _claim_of(outcome: Outcome) -> tuple[str, int]:
    return outcome.dispatch.claimed.id, outcome.dispatch.claimed.claim


def _next(outcome: Outcome) -> tuple[str, int | None]:
    """The status that follows, and in how many seconds to try again; of an endpoint that stops it is held after all."""
    schedule, step = settings().retry_schedule_seconds, outcome.dispatch.step
    if outcome.answer.ok:
        return "delivered", None
    if outcome.answer.status == 410 or step >= len(schedule):
        return "failed", None
    return "pending", schedule[step]


def _columns(outcomes: Sequence[Outcome], moves: Sequence[tuple[str, int | None]]) -> dict[str, list[Any]]:
    return {
        "ids": [o.dispatch.claimed.id for o in outcomes],
        "claims": [o.dispatch.claimed.claim for o in outcomes],
        "statuses": [status for status, _ in moves],
        "due_in": [due_in for _, due_in in moves],
        "errors": [o.answer.error for o in outcomes],
        "ats": [o.at.timestamp() for o in outcomes],
        "durations": [o.answer.duration_ms for o in outcomes],
        "codes": [o.answer.status for o in outcomes],
        # PostgreSQL's text holds no NUL; a receiver may send what it likes.
        "bodies": [o.answer.body.decode("utf-8", "replace").replace("\0", "\ufffd") for o in outcomes],
    }


def _log_attempts(outcomes: Sequence[Outcome], statuses: Sequence[str]) -> None:
    lines = []
    for outcome, status in zip(outcomes, statuses, strict=True):
        dispatch, answer = outcome.dispatch, outcome.answer
        kind_of_answer = f"{answer.status // 100}xx" if answer.status else "none"
        metrics.ATTEMPT_SECONDS.labels(kind_of_answer).observe(answer.duration_ms / 1000)
        line = {
            "request_id": dispatch.trace_id,
            "delivery": dispatch.claimed.id,
            "endpoint": dispatch.claimed.owner,
            "kind": dispatch.kind,
            "number": dispatch.step + 1,
            "code": answer.status,
            "error": answer.error,
            "duration_ms": answer.duration_ms,
            "status": status,
        }
        lines.append(line)
    logs.info_each("delivery.attempt", lines)
