"""Batches of sweeps: each changes some of an endpoint's deliveries, and advances the sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from app import mailbox
from app.database import count, rows, transaction
from app.domain.deliveries import lanes, resends
from app.domain.deliveries.resends import Resent
from app.domain.deliveries.sweeps import MAIL, WANTED_IN, choice
from app.mailbox import Claimed
from app.models.sweeps import Sweep

log = structlog.get_logger(__name__)

# How many deliveries one transaction looks at.
BATCH = 500
# The pause while another transaction has locked the next delivery.
PAUSE_SECONDS = 0.01


def work(endpoint_id: str) -> None:
    """Continues the endpoint's sweeps, oldest first, until none are left or the time slice is over."""
    mailbox.serve(MAIL, endpoint_id, 1, _go_on)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Locked deliveries, oldest first.

    `skipped`: how many more were left out because they have no body. `position`: the sweep's new position.
    """

    deliveries: Sequence[Resent]
    skipped: int
    position: str
    is_last: bool


def _go_on(claimed: Sequence[Claimed]) -> None:
    """Does one batch of the sweep, atomically."""
    with transaction():
        if not mailbox.holding(MAIL, claimed):
            log.warning("sweep.not_held", sweep=claimed[0].id, endpoint=claimed[0].owner)
            return
        sweep = Sweep.get_by_id(claimed[0].id)
        batch = _next(sweep) if _is_wanted(sweep) else _Batch([], 0, sweep.position, is_last=True)
        if batch.deliveries:
            _ACTIONS[sweep.action](batch.deliveries)
        _save(sweep, batch)
    if batch.deliveries:
        lanes.ring([sweep.endpoint_id])
    if batch.is_last:
        log.info("sweep.finished", request_id=sweep.trace_id, sweep=sweep.id, action=sweep.action)
    elif batch.position == sweep.position:
        time.sleep(PAUSE_SECONDS)


def _is_wanted(sweep: Sweep) -> bool:
    # Reads the endpoint without a lock: senders lock endpoints before deliveries. If the endpoint changes meanwhile,
    # another sweep follows and corrects this one.
    state = rows("SELECT state FROM endpoints WHERE id = %s", (sweep.endpoint_id,))
    return (state[0][0] if state else "deleted") in WANTED_IN[sweep.action]


def _next(sweep: Sweep) -> _Batch:
    """Locks the next deliveries, up to the first one that another transaction has locked.

    Never waits for a lock: senders lock several deliveries in another order, so waiting could deadlock.
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
    """Returns the next deliveries in the index, and whether the sweep applies to each.

    Reads a fixed number, so that a batch costs the same however few match.
    """
    chosen, parameters = choice(sweep.action, sweep.statuses, sweep.kinds, sweep.since, sweep.until)
    bounds = (sweep.endpoint_id, sweep.position, sweep.endpoint_id, sweep.last_id, sweep.position, sweep.last_id)
    # The condition of the index deliveries_undelivered. Delivered ones are only in the index of all deliveries.
    condition = "true" if "delivered" in sweep.statuses else "status IN ('pending', 'held', 'failed')"
    ranges = [
        _RANGE.format(chosen=chosen, column=column, value=value, condition=condition)
        for column, value in _walks(sweep.statuses)
    ]
    return rows(
        f"SELECT id, matches FROM ({' UNION ALL '.join(ranges)}) AS looked_at ORDER BY id LIMIT %s",
        (*(sweep.created_at, *parameters, *bounds, BATCH) * len(ranges), BATCH),
    )


def _walks(statuses: Collection[str]) -> list[tuple[str, str]]:
    """Returns the index ranges of the statuses: columns after `endpoint_id`, and their values."""
    if "delivered" in statuses:
        return [("", "")]  # the index deliveries_endpoint_page
    return [(" (status = 'pending'),", f" {is_pending},") for is_pending in sorted({s == "pending" for s in statuses})]


# States the bounds twice: with all index columns, so that the planner walks the index in order, and with the identifier
# alone for partition pruning.
_RANGE = """(
    SELECT id, created_at <= %s AND {chosen} AS matches FROM deliveries
    WHERE (endpoint_id,{column} id) > (%s,{value} %s) AND (endpoint_id,{column} id) <= (%s,{value} %s)
        AND id > %s AND id <= %s AND {condition}
    ORDER BY endpoint_id,{column} id LIMIT %s)
"""


def _lock(sweep: Sweep, delivery_ids: Sequence[str]) -> list[Resent]:
    """Locks the deliveries that are free and still match; returns them, oldest first."""
    chosen, parameters = choice(sweep.action, sweep.statuses)
    locked = rows(
        f"""
        SELECT id, status FROM deliveries
        WHERE id = ANY(%s) AND {chosen} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
        """,
        (list(delivery_ids), *parameters),
    )
    return [Resent(id, status) for id, status in locked]


def _with_bodies(deliveries: Sequence[Resent]) -> list[Resent]:
    """Returns the deliveries whose event still exists."""
    # In two steps: with a join, the planner might read all events.
    found = rows("SELECT id, event_id FROM deliveries WHERE id = ANY(%s)", ([each.id for each in deliveries],))
    event_of = dict(found)
    kept = resends.with_bodies({*event_of.values()})
    return [each for each in deliveries if event_of[each.id] in kept]


def _save(sweep: Sweep, batch: _Batch) -> None:
    count(
        """
        UPDATE sweeps
        SET position = %(position)s, changed = changed + %(changed)s, skipped = skipped + %(skipped)s,
            due_at = CASE WHEN NOT %(is_last)s THEN due_at END, leased_until = NULL,
            finished_at = CASE WHEN %(is_last)s THEN clock_timestamp() END
        WHERE id = %(id)s
        """,
        {
            "position": batch.position,
            "changed": len(batch.deliveries),
            "skipped": batch.skipped,
            "is_last": batch.is_last,
            "id": sweep.id,
        },
    )


# The actions of sweeps.


def _set_aside(status: str, deliveries: Sequence[Resent]) -> None:
    set_aside = "UPDATE deliveries SET status = %s, due_at = NULL, next_attempt_at = NULL WHERE id = ANY(%s)"
    count(set_aside, (status, [delivery.id for delivery in deliveries]))


def _release(deliveries: Sequence[Resent]) -> None:
    released = [delivery.id for delivery in deliveries]
    # One microsecond apart, to keep the order. An attempt in progress keeps its lease.
    count(
        """
        UPDATE deliveries SET status = 'pending', due_at = now() + place * interval '1 microsecond'
        FROM unnest(%s::text[]) WITH ORDINALITY AS released(id, place)
        WHERE deliveries.id = released.id AND deliveries.id = ANY(%s)
        """,
        (released, released),
    )


_ACTIONS: Mapping[str, Callable[[Sequence[Resent]], object]] = {
    # The lease stays, so that the outcome of an attempt in progress is still recorded.
    "hold": partial(_set_aside, "held"),
    "cancel": partial(_set_aside, "cancelled"),
    "release": _release,
    "resend": resends.send_again,
}
