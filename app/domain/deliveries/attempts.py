"""Attempts: claims due deliveries, loads what their requests need, and records the outcomes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import structlog
from cryptography.fernet import InvalidToken

from app import logs, mailbox, metrics, sql
from app.config import settings
from app.database import count, rows, transaction
from app.domain.deliveries import lanes, stops
from app.domain.deliveries.deliveries import BODY_GONE
from app.lib import clock, signatures, vault
from app.logs import tracing
from app.mailbox import Claimed, Found, Mail, Pause
from app.models.endpoints import Endpoint
from app.outbound import Answer

if TYPE_CHECKING:
    from app.logs.spans import Spans

log = structlog.get_logger(__name__)

Claims = set[tuple[str, int]]  # identifiers of deliveries, each with its claim's number


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed delivery, with everything that an attempt needs."""

    claimed: Claimed
    trace_id: str  # of the request that caused the event; "" if none did
    address: str
    secrets: tuple[str, ...]
    body: bytes
    is_probe: bool = False
    is_ordered: bool = False  # nothing else may be sent to its endpoint until its outcome is recorded

    @property
    def span(self) -> tuple[str, int]:
        """The trace and the span of the attempt."""
        trace_id = tracing.trace_of(self.trace_id or self.claimed.carried.event_id)
        return trace_id, tracing.span_of(self.claimed.id, str(self.claimed.claim))

    def headers(self) -> dict[str, str]:
        """The request headers, signed with the current time: call this just before sending."""
        signature = signatures.sign(self.secrets, int(clock.now().timestamp()), self.body)
        traced = {"traceparent": tracing.traceparent(*self.span)} if tracing.spans is not None else {}
        return headers_of(self.claimed.id, signature) | traced


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt. After a fault on our side, it is retried in `pause_seconds`."""

    dispatch: Dispatch
    at: datetime
    answer: Answer
    pause_seconds: float = 0.0

    @property
    def claimed(self) -> Claimed:
        """The delivery's row."""
        return self.dispatch.claimed


@dataclass(frozen=True, slots=True)
class Batch(Found[Dispatch, Outcome]):
    """The result of a claim. `restrained`: endpoints that `claim_restrained` served or told to wait."""

    restrained: Collection[str] = ()


def headers_of(delivery_id: str, signature: str) -> dict[str, str]:
    """The headers that a webhook adds to those of every outbound request (public API, part 6)."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "Bellhop-Webhooks/1",
        "X-Service-Delivery": delivery_id,
        "X-Service-Signature": signature,
    }


def claim_all(lane: Mail, rooms: Mapping[str, int], unsure: Collection[str]) -> Batch:
    """Claims up to `rooms` deliveries of each endpoint, restrained or not.

    Most endpoints are not restrained, so `claim` runs first. `claim_restrained` runs only for those of the `unsure`
    endpoints that `claim` found nothing for.
    """
    dispatches = claim(lane, rooms)
    found = {dispatch.claimed.owner for dispatch in dispatches}
    silent = {owner: rooms[owner] for owner in unsure if owner not in found}
    restrained, pauses = claim_restrained(lane, silent) if silent else ([], {})
    dispatches += restrained
    return Batch(
        dispatches,
        # Counts dispatches, not claims: if deliveries cannot be sent, claiming more would only lease them.
        more=mailbox.may_have_more(rooms, [dispatch.claimed for dispatch in dispatches]),
        pauses={owner: Pause(seconds, is_closed=True) for owner, seconds in pauses.items()},
        restrained={*pauses, *(dispatch.claimed.owner for dispatch in restrained)},
    )


def claim(lane: Mail, rooms: Mapping[str, int]) -> list[Dispatch]:
    """Claims due deliveries of active, unrestrained endpoints in the lane: up to `rooms` of each."""
    return _dispatches(mailbox.claim(lane, rooms, lanes.lease_seconds()))


def claim_restrained(lane: Mail, rooms: Mapping[str, int]) -> tuple[list[Dispatch], dict[str, float]]:
    """Claims due deliveries of the lane's restrained endpoints: probed, rate-limited or ordered.

    Across all processes, an endpoint has at most one probe in flight and no more attempts than its limit allows. An
    ordered endpoint has one delivery in flight: the oldest that is not finished. Also returns how many seconds to wait
    before looking again, by endpoint, for those that may have more then.
    """
    wanted = {"ids": sql.array(rooms), "rooms": sql.array(rooms.values()), "is_slow": lane is lanes.SLOW}
    wanted |= {"starts": sql.array(mailbox.starts(lane, rooms).values()), "lease_seconds": lanes.lease_seconds()}
    found = rows(sql.prepared("claim_restrained"), wanted)
    claims, restraints, pauses = [], {}, {}
    for id, owner, number, waited, is_probe, is_ordered, event_id, kind, tries, seconds in found:
        if id is None:
            pauses[owner] = seconds
        else:
            claims.append(Claimed(id, owner, number, lanes.Carried(event_id, kind, tries), waited))
            restraints[id] = {"is_probe": is_probe, "is_ordered": is_ordered}
    return [replace(each, **restraints[each.claimed.id]) for each in _dispatches(claims)], pauses


def record(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Logs attempts, updates deliveries and counts the endpoints' failures, all in one transaction.

    Never waits for a row lock. Returns the outcomes to record later, because another transaction has locked their
    delivery or endpoint. Safe to repeat: an outcome is recorded once, and only under the claim it was made with.
    """
    if not outcomes:
        return []
    failing = {o.claimed.owner for o in outcomes if not o.answer.ok}
    if failing:
        with transaction():
            unrecorded, answering = _record_failing(outcomes, failing)
    else:
        unrecorded, answering = _record(outcomes, {})
    locked = _still_held(unrecorded)
    later = [o for o in outcomes if o.claimed.key in locked] if locked else []
    _log_attempts([o for o in outcomes if o.claimed.key not in locked] if locked else outcomes, unrecorded - locked)
    if answering:
        lanes.ring(answering)
    return later


def _record_failing(outcomes: Sequence[Outcome], failing: set[str]) -> tuple[Claims, set[str]]:
    """Like `_record`, and counts the failures. Leaves out endpoints locked by other transactions."""
    free = {endpoint.id: endpoint for endpoint in Endpoint.lock_free(failing)}
    # The endpoints that exist but could not be locked. Deleted ones have no row, and their outcomes are recorded.
    locked = {id for (id,) in rows("SELECT id FROM endpoints WHERE id = ANY(%s)", (list(failing - free.keys()),))}
    ready = [o for o in outcomes if o.claimed.owner not in locked]
    # Read under the lock, before recording: a stopped endpoint must not get another retry scheduled.
    states = {id: free[id].state if id in free else "deleted" for id in failing}
    unrecorded, answering = _record(ready, states)
    counted = defaultdict(list)
    for outcome in ready:
        if outcome.claimed.key not in unrecorded:
            counted[outcome.claimed.owner].append((outcome.answer, outcome.dispatch.is_probe))
    for endpoint in free.values():
        was_probed = endpoint.probe_at is not None
        stops.count_outcomes(endpoint, counted[endpoint.id])
        if was_probed and endpoint.probe_at is None and endpoint.state == "active":
            answering.add(endpoint.id)
    return unrecorded | {o.claimed.key for o in outcomes if o.claimed.owner in locked}, answering


def _dispatches(claims: Sequence[Claimed]) -> list[Dispatch]:
    """Loads what the claimed deliveries' requests need. Fails those whose event has been deleted."""
    if not claims:
        return []
    endpoints = _by_id("find_targets", {claimed.owner for claimed in claims})
    events = _by_id("find_bodies", {claimed.carried.event_id for claimed in claims})
    if bodiless := [claimed for claimed in claims if claimed.carried.event_id not in events]:
        _give_up(bodiless)
    dispatches = [
        _dispatch(claimed, events[claimed.carried.event_id], endpoints[claimed.owner])
        for claimed in claims
        if claimed.carried.event_id in events and claimed.owner in endpoints
    ]
    return [dispatch for dispatch in dispatches if dispatch]


def _by_id(query: str, wanted: Collection[str]) -> dict[str, Sequence[Any]]:
    ids = {"ids": sql.array(wanted), "first_id": min(wanted), "last_id": max(wanted)}
    return {row[0]: row[1:] for row in rows(sql.prepared(query), ids)}


def _give_up(bodiless: Sequence[Claimed]) -> None:
    # Skips deliveries that another transaction has locked: they are claimed again when their lease ends.
    count(
        """
        UPDATE deliveries SET status = 'failed', due_at = NULL, leased_until = NULL, last_error = %s
        WHERE id IN (
            SELECT deliveries.id FROM unnest(%s::text[], %s::int[]) AS gone(id, claim) JOIN deliveries USING (id, claim)
            FOR NO KEY UPDATE OF deliveries SKIP LOCKED)
        """,
        (BODY_GONE, [row.id for row in bodiless], [row.claim for row in bodiless]),
    )
    log.warning("delivery.body_gone", deliveries=[row.id for row in bodiless])


def _dispatch(claimed: Claimed, event: Sequence[Any], endpoint: Sequence[Any]) -> Dispatch | None:
    trace_id, body = event
    address, *sealed_secrets = endpoint
    keys = settings().secret_keys
    try:
        secrets = tuple(vault.decrypt(keys, bytes(sealed)) for sealed in sealed_secrets if sealed)
    except InvalidToken:
        # This is the operator's fault, not the receiver's. Nothing is counted, and the delivery will be claimed again.
        log.error("delivery.secret_unreadable", delivery=claimed.id, endpoint=claimed.owner, remedy="check SECRET_KEY")
        return None
    return Dispatch(claimed, trace_id, address, secrets, body.encode())


def _record(outcomes: Sequence[Outcome], states: Mapping[str, str]) -> tuple[Claims, set[str]]:
    """Records the outcomes whose rows are not locked.

    `states`: the state of each endpoint with failures. Returns the claims that were not recorded, and the endpoints
    that answered a probe.
    """
    if not outcomes:
        return set(), set()
    columns = _columns(outcomes)
    columns["states"] = [states.get(o.claimed.owner, "active") for o in outcomes]
    parameters = {name: sql.array(values) for name, values in columns.items()}
    parameters["answering"] = sql.array({o.claimed.owner for o in outcomes} - states.keys())
    parameters |= {"first_id": min(columns["ids"]), "last_id": max(columns["ids"])}
    found = rows(sql.prepared("record_attempts"), parameters)
    return {(id, claim) for id, claim in found if claim is not None}, {id for id, claim in found if claim is None}


def _still_held(claims: Claims) -> Claims:
    """Returns the claims that are still ours, so that their outcomes have to be recorded later."""
    if not claims:
        return set()
    query = """
        SELECT id, claim FROM unnest(%s::text[], %s::int[]) AS unrecorded(id, claim) JOIN deliveries USING (id, claim)
        WHERE leased_until IS NOT NULL AND status IN ('pending', 'held', 'cancelled')
    """
    return set(rows(query, ([id for id, _ in claims], [claim for _, claim in claims])))


def _next(outcome: Outcome) -> tuple[str, float | None]:
    """Returns the next status, and the seconds until a retry; None without one.

    Instead of a retry, `record_attempts.sql` holds the delivery if its endpoint is stopped, and cancels it if the
    endpoint is deleted.
    """
    if outcome.answer.ok:
        return "delivered", None
    if outcome.answer.is_ours:
        return "pending", outcome.pause_seconds
    schedule, tries = settings().retry_schedule_seconds, outcome.claimed.carried.tries
    if outcome.answer.status == 410 or tries >= len(schedule):
        return "failed", None
    return "pending", max(schedule[tries], outcome.answer.asked_pause_seconds(clock.now()))


def _columns(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    moves = [_next(outcome) for outcome in outcomes]
    return {
        "ids": [o.claimed.id for o in outcomes],
        "claims": [o.claimed.claim for o in outcomes],
        "statuses": [status for status, _ in moves],
        "due_in": [due_in for _, due_in in moves],
        "errors": [o.answer.error for o in outcomes],
        "error_codes": [o.answer.error_code for o in outcomes],
        "ats": [o.at.timestamp() for o in outcomes],
        "durations": [o.answer.duration_ms for o in outcomes],
        "answers": [o.answer.status for o in outcomes],
        # PostgreSQL's text cannot hold NULs, which a receiver may send.
        "bodies": [o.answer.body.decode("utf-8", "replace").replace("\0", "\ufffd") for o in outcomes],
    }


def _log_attempts(outcomes: Sequence[Outcome], stale: Claims) -> None:
    made, faults = [], []
    for outcome in outcomes:
        claimed, answer = outcome.claimed, outcome.answer
        line = {
            "request_id": outcome.dispatch.trace_id,
            "delivery": claimed.id,
            "endpoint": claimed.owner,
            "kind": claimed.carried.kind,
            "number": claimed.carried.tries + 1,
            "code": answer.status,
            "error_code": answer.error_code,
            "error": answer.error,
            "duration_ms": answer.duration_ms,
            "status": "stale" if stale and outcome.claimed.key in stale else _next(outcome)[0],
        }
        if answer.is_ours:
            faults.append(line)
            continue
        kind_of_answer = f"{answer.status // 100}xx" if answer.status else "none"
        metrics.ATTEMPT_SECONDS.labels(kind_of_answer).observe(answer.duration_ms / 1000)
        made.append(line)
    logs.info_each("delivery.attempt", made)
    logs.info_each("delivery.fault_of_ours", faults)
    if tracing.spans is not None:
        _trace(tracing.spans, outcomes)


def _trace(spans: Spans, outcomes: Iterable[Outcome]) -> None:
    """Adds a span for each attempt, below the span of its event."""
    for outcome in outcomes:
        dispatch, carried, answer = outcome.dispatch, outcome.claimed.carried, outcome.answer
        began, own = outcome.at.timestamp(), {"bellhop.delivery.id": outcome.claimed.id}
        own |= {"bellhop.endpoint.id": outcome.claimed.owner, "bellhop.event.kind": carried.kind}
        spans.add(
            "POST webhook",
            "CLIENT",
            *dispatch.span,
            tracing.span_of(carried.event_id),
            (began, began + answer.duration_ms / 1000),
            tracing.of_request("POST", dispatch.address, carried.tries, answer.status) | own,
            answer.error_code,
        )
