"""Sweeps: long changes over the deliveries of an endpoint, in small transactions, exact and resumable.

A sweep walks through the endpoint's deliveries in the order of their identifiers, from `position` to `last_id`. One
transaction changes some of them and moves the position past them, so that however often a worker dies each is
changed once and none is left out. The sweeps of an endpoint are mail in order: one worker at a time, oldest first.

It is about the deliveries that were there when it began: no later than the last of them by identifier, and none made
afterwards whose identifier is smaller because another machine's clock is behind. A delivery whose transaction was
under way at that moment may be passed over; where that matters, for an endpoint that stops or is deleted, the
scheduler finds it (`begin_missing`) and begins another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from app import mailbox
from app.config import settings
from app.database import count, database, rows, transaction
from app.domain import lanes, resends
from app.domain.resends import Resent
from app.lib import ids
from app.mailbox import Claimed, Mail
from app.models.sweeps import Sweep

log = structlog.get_logger(__name__)

MAIL = Mail(table="sweeps", owner="endpoint_id", queue="sweeps", order="id", in_order=True)
# Deliveries that one transaction looks at.
BATCH = 500
# Each batch extends it, and one under way is kept by its lock as well.
LEASE_SECONDS = 5
# After so long a worker lets others' endpoints have their turn.
TURN_SECONDS = 0.25
# How long to wait where somebody else is just changing the next delivery.
PAUSE_SECONDS = 0.01

# The states of the endpoint in which an action makes sense; in another the sweep ends where it is.
WANTED_IN = {"hold": ("stopped",), "cancel": ("deleted",), "release": ("active",), "resend": ("active",)}
# What must become of mail that an endpoint in such a state has.
UNSERVED = {"stopped": ("hold", ["pending"]), "deleted": ("cancel", ["pending", "held"])}


def begin(
    workspace_id: str,
    endpoint_id: str,
    action: str,
    statuses: Sequence[str],
    trace_id: str,
    *,
    kinds: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    matched: int | None = None,
    job_id: str | None = None,
    sweep_id: str | None = None,
) -> str:
    """Writes down, in the present transaction, what is to be done; a worker does it when that commits. Its identifier.

    It is about the deliveries that this transaction sees now. `since` is inclusive and `until` exclusive.
    """
    sweep_id = sweep_id or ids.new("swp")
    # The time of the statement, not of the transaction: no delivery that is seen was made after it. And no equality,
    # but the order of the index: the planner might look for the last delivery of all from the end instead.
    count(
        """
        INSERT INTO sweeps (id, workspace_id, endpoint_id, action, statuses, kinds, since, until, last_id, matched,
            job_id, trace_id, created_at)
        SELECT %s, %s, %s, %s, %s::text[], %s::text[], %s, %s,
            coalesce((
                SELECT id FROM deliveries WHERE endpoint_id >= %s AND endpoint_id <= %s
                ORDER BY endpoint_id DESC, id DESC LIMIT 1), ''),
            %s, %s, %s, clock_timestamp()
        """,
        (
            *(sweep_id, workspace_id, endpoint_id, action, list(statuses), kinds, since, until),
            *(endpoint_id, endpoint_id, matched, job_id, trace_id),
        ),
    )
    database.after_commit(partial(mailbox.ring, MAIL, endpoint_id))
    return sweep_id


def begin_missing(endpoint_ids: Collection[str]) -> int:
    """Begins a sweep for those of the endpoints, which all have mail, that are stopped or deleted; returns how many.

    Their mail is what was made or put off for them at the moment of their end. Harmless if two do it at once.
    """
    unserved = rows(
        """
        SELECT id, workspace_id, state FROM endpoints
        WHERE id = ANY(%s) AND state <> 'active' AND NOT EXISTS (
            SELECT FROM sweeps
            WHERE endpoint_id = endpoints.id AND due_at IS NOT NULL
                AND action = CASE endpoints.state WHEN 'stopped' THEN 'hold' ELSE 'cancel' END)
        """,
        (list(endpoint_ids),),
    )
    for endpoint_id, workspace_id, state in unserved:
        begin(workspace_id, endpoint_id, *UNSERVED[state], trace_id="")
    return len(unserved)


def work(endpoint_id: str) -> None:
    """Goes on with the endpoint's sweeps, oldest first, until none is left or its turn is over."""
    turn_ends = time.monotonic() + TURN_SECONDS
    while batch := mailbox.take_head(MAIL, endpoint_id, 1, LEASE_SECONDS):
        while _go_on(batch[0], turn_ends):
            pass
        if time.monotonic() > turn_ends:
            mailbox.give_way(MAIL, endpoint_id)
            return


def count_matching(
    endpoint_id: str,
    statuses: Sequence[str],
    kinds: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> int:
    """How many deliveries match now, with or without their bodies."""
    chosen, parameters = _chosen(statuses, kinds, since, until)
    counted = f"SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND {chosen}"
    return int(rows(counted, (endpoint_id, *parameters))[0][0])


def count_resendable(
    endpoint_id: str,
    statuses: Sequence[str],
    kinds: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[int, int]:
    """How many deliveries a resend would send now, and how many more match but have lost their bodies."""
    chosen, parameters = _chosen(statuses, kinds, since, until)
    [counted] = rows(
        f"""
        SELECT count(events.id), count(*) FILTER (WHERE events.id IS NULL)
        FROM deliveries LEFT JOIN events ON events.id = deliveries.event_id
        WHERE endpoint_id = %s AND {chosen}
        """,
        (endpoint_id, *parameters),
    )
    return counted[0], counted[1]


def forget_old(limit: int = 10_000) -> int:
    """Deletes up to so many sweeps that have ended and been kept as long as history is; returns how many."""
    return count(
        """
        DELETE FROM sweeps WHERE id IN (
            SELECT id FROM sweeps WHERE finished_at < now() - %s * interval '1 day' ORDER BY finished_at LIMIT %s)
        """,
        (settings().history_retention_days, limit),
    )


def find(workspace_id: str, sweep_id: str) -> Sweep:
    """Raises NotFound."""
    return Sweep.get_in(workspace_id, sweep_id, "swp")


def represent(sweep: Sweep) -> dict[str, Any]:
    return {
        "id": sweep.id,
        "endpoint_id": sweep.endpoint_id,
        "action": sweep.action,
        "status": "running" if sweep.finished_at is None else "finished",
        "count": sweep.matched,
        "changed": sweep.changed,
        "skipped": sweep.skipped,
        "statuses": sweep.statuses,
        "kinds": sweep.kinds,
        "since": sweep.since,
        "until": sweep.until,
        "created_at": sweep.created_at,
        "finished_at": sweep.finished_at,
    }


# One batch


@dataclass(frozen=True, slots=True)
class _Batch:
    """Deliveries that are locked, oldest first, how many more have no bodies, and where the walk then stands."""

    deliveries: Sequence[Resent]
    skipped: int
    position: str
    is_last: bool


def _go_on(claimed: Claimed, turn_ends: float) -> bool:
    """Does one batch, all or nothing. Whether this worker is to do the next one too."""
    with transaction():
        if not mailbox.holding(MAIL, [claimed]):
            log.warning("sweep.not_held", sweep=claimed.id, endpoint=claimed.owner)
            return False
        sweep = Sweep.get_by_id(claimed.id)
        batch = _next(sweep) if _is_wanted(sweep) else _Batch([], 0, sweep.position, is_last=True)
        if batch.deliveries:
            _ACTIONS[sweep.action](batch.deliveries)
        goes_on = not batch.is_last and time.monotonic() <= turn_ends
        _save(sweep, batch, LEASE_SECONDS if goes_on else 0)
    if batch.deliveries:
        lanes.ring([sweep.endpoint_id])
    if batch.is_last:
        log.info("sweep.finished", request_id=sweep.trace_id, sweep=sweep.id, action=sweep.action)
    elif batch.position == sweep.position:
        time.sleep(PAUSE_SECONDS)
    return goes_on


def _is_wanted(sweep: Sweep) -> bool:
    # The row is not locked: who records attempts locks it before deliveries. An endpoint that changes meanwhile has
    # another sweep to come, which puts right what this one did too late.
    state = rows("SELECT state FROM endpoints WHERE id = %s", (sweep.endpoint_id,))
    return (state[0][0] if state else "deleted") in WANTED_IN[sweep.action]


def _next(sweep: Sweep) -> _Batch:
    """Locks the next deliveries, up to the first that somebody else has locked.

    It waits for none: whoever records attempts locks several as well, in an order of its own.
    """
    looked_at = _look(sweep)
    matching = [id for id, matches in looked_at if matches]
    locked = _lock(sweep, matching)
    taken = {delivery.id for delivery in locked}
    obstacle = next((id for id in matching if id not in taken), None)
    passed = [id for id, _ in looked_at if obstacle is None or id < obstacle]
    before = [delivery for delivery in locked if obstacle is None or delivery.id < obstacle]
    able = before if sweep.action != "resend" else _with_bodies(before)
    return _Batch(
        deliveries=able,
        skipped=len(before) - len(able),
        position=passed[-1] if passed else sweep.position,
        is_last=obstacle is None and len(looked_at) < BATCH,
    )


def _look(sweep: Sweep) -> list[tuple[str, bool]]:
    """The next deliveries in the index, and whether the sweep is about them.

    So many whether or not they match: a batch costs the same however few do.
    """
    chosen, parameters = _chosen(sweep.statuses, sweep.kinds, sweep.since, sweep.until)
    # As in the condition of the index deliveries_undelivered; delivered ones are in that of all. The bounds are said
    # twice: in pairs for the index, so that no other order will do, and alone for the choice of partitions.
    index = "true" if "delivered" in sweep.statuses else "status IN ('pending', 'held', 'failed')"
    return rows(
        f"""
        SELECT id, created_at <= %s AND {chosen} FROM deliveries
        WHERE (endpoint_id, id) > (%s, %s) AND (endpoint_id, id) <= (%s, %s) AND id > %s AND id <= %s AND {index}
        ORDER BY endpoint_id, id LIMIT %s
        """,
        (
            *(sweep.created_at, *parameters),
            *(sweep.endpoint_id, sweep.position, sweep.endpoint_id, sweep.last_id, sweep.position, sweep.last_id),
            BATCH,
        ),
    )


def _lock(sweep: Sweep, delivery_ids: Sequence[str]) -> list[Resent]:
    """Those of them that nobody else has locked and whose status is still one that the sweep is about, oldest first."""
    locked = rows(
        """
        SELECT id, status FROM deliveries
        WHERE id = ANY(%s) AND status = ANY(%s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
        """,
        (list(delivery_ids), sweep.statuses),
    )
    return [Resent(id, status) for id, status in locked]


def _with_bodies(deliveries: Sequence[Resent]) -> list[Resent]:
    """Those of them that can be sent again."""
    # In two steps: joined, the planner may prefer to read all events there are.
    found = rows("SELECT id, event_id FROM deliveries WHERE id = ANY(%s)", ([each.id for each in deliveries],))
    event_of = dict(found)
    kept = {id for (id,) in rows("SELECT id FROM events WHERE id = ANY(%s)", (list({*event_of.values()}),))}
    return [each for each in deliveries if event_of[each.id] in kept]


def _chosen(
    statuses: Sequence[str], kinds: Sequence[str] | None, since: datetime | None, until: datetime | None
) -> tuple[str, list[Any]]:
    """The condition for what was chosen, and its parameters."""
    conditions = {
        "deliveries.status = ANY(%s)": list(statuses),
        "deliveries.kind = ANY(%s)": kinds,
        "deliveries.created_at >= %s": since,
        "deliveries.created_at < %s": until,
    }
    given = {condition: value for condition, value in conditions.items() if value is not None}
    return " AND ".join(given), list(given.values())


def _save(sweep: Sweep, batch: _Batch, lease_seconds: float) -> None:
    count(
        """
        UPDATE sweeps
        SET position = %(position)s, changed = changed + %(changed)s, skipped = skipped + %(skipped)s,
            due_at = CASE WHEN NOT %(is_last)s THEN now() + %(lease)s * interval '1 second' END,
            finished_at = CASE WHEN %(is_last)s THEN clock_timestamp() END
        WHERE id = %(id)s
        """,
        {
            "position": batch.position,
            "changed": len(batch.deliveries),
            "skipped": batch.skipped,
            "is_last": batch.is_last,
            "lease": lease_seconds,
            "id": sweep.id,
        },
    )


# What is done to them


def _hold(deliveries: Sequence[Resent]) -> None:
    # The lease stays: the outcome of an attempt under way is still recorded.
    _set_aside("held", deliveries)


def _cancel(deliveries: Sequence[Resent]) -> None:
    _set_aside("cancelled", deliveries)


def _set_aside(status: str, deliveries: Sequence[Resent]) -> None:
    set_aside = "UPDATE deliveries SET status = %s, due_at = NULL WHERE id = ANY(%s)"
    count(set_aside, (status, [delivery.id for delivery in deliveries]))


def _release(deliveries: Sequence[Resent]) -> None:
    released = [delivery.id for delivery in deliveries]
    # A microsecond for each keeps their order. An attempt that is under way still keeps its lease.
    count(
        """
        UPDATE deliveries SET status = 'pending', due_at = now() + place * interval '1 microsecond'
        FROM unnest(%s::text[]) WITH ORDINALITY AS released(id, place)
        WHERE deliveries.id = released.id AND deliveries.id = ANY(%s)
        """,
        (released, released),
    )


_ACTIONS: Mapping[str, Callable[[Sequence[Resent]], object]] = {
    "hold": _hold,
    "cancel": _cancel,
    "release": _release,
    "resend": resends.send_again,
}
