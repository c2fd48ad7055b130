"""Sweeps: long changes of an endpoint's deliveries, in small transactions, exact and resumable.

A sweep goes through the endpoint's deliveries by identifier, from `position` to `last_id`. Each step is a transaction
that changes some of them and moves the position, so that every delivery is changed exactly once, even if workers die.
An endpoint's sweeps are ordered mail: one worker at a time, oldest first.

A sweep covers the deliveries that existed when it began: none after the last identifier, and none made later with a
smaller identifier, because another machine's clock is behind. A delivery whose transaction was uncommitted at that
moment may be missed. Where that matters, for stopped and deleted endpoints, the scheduler finds it (`begin_missing`)
and starts another sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from itertools import takewhile
from time import sleep
from typing import Any

import structlog
from marshmallow import fields, validate

from app import mailbox
from app.database import count, database, rows, transaction
from app.domain.deliveries import lanes, resends
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.mailbox import Claimed, Mail
from app.models.sweeps import Sweep

log = structlog.get_logger(__name__)

MAIL = Mail(table="sweeps", owner="endpoint_id", queue="sweeps", order="id", exclusive=True)
# The endpoint's state that each action requires. In any other state, the sweep ends.
WANTED_IN = {"hold": ("stopped",), "cancel": ("deleted",), "release": ("active",), "resend": ("active",)}
# The sweep that an endpoint with mail needs in each state, and the statuses that it changes.
UNSERVED = {"stopped": ("hold", ["pending"]), "deleted": ("cancel", ["pending", "held"])}
# How many deliveries one step looks at.
STEP = 500
# The pause while another transaction has locked the next delivery.
PAUSE_SECONDS = 0.01


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
    """Stores a sweep in the current transaction; a worker starts it after the commit.

    Returns the sweep's identifier. The sweep covers the deliveries that this transaction sees now. `since` is
    inclusive, `until` exclusive.
    """
    sweep_id = sweep_id or ids.new("swp")
    # `clock_timestamp()`, because deliveries that this statement sees may be younger than the transaction. A range of
    # `endpoint_id` instead of `=`, because the planner might otherwise search all deliveries from the end.
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
    """Starts a sweep for each stopped or deleted endpoint that needs one; returns how many.

    Pass endpoints with mail: it was made or postponed while the endpoint was being stopped or deleted. Safe to run
    concurrently.
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


def count_matching(endpoint_id: str, **filters: Any) -> int:
    """Counts the deliveries that a resend with these filters would match now, with or without a body."""
    chosen, parameters = _choice("resend", **filters)
    counted = f"SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND {chosen}"
    return int(rows(counted, (endpoint_id, *parameters))[0][0])


def count_resendable(endpoint_id: str, **filters: Any) -> tuple[int, int]:
    """Counts the deliveries that a resend would send now, and those that match but have no body."""
    chosen, parameters = _choice("resend", **filters)
    [counted] = rows(
        f"""
        SELECT count(events.id), count(*) FILTER (WHERE events.id IS NULL)
        FROM deliveries LEFT JOIN events ON events.id = deliveries.event_id
        WHERE endpoint_id = %s AND {chosen}
        """,
        (endpoint_id, *parameters),
    )
    return counted[0], counted[1]


ACTIONS = tuple(WANTED_IN)


class SweepSchema(ResponseBody):
    id = fields.String()
    endpoint_id = fields.String()
    action = fields.String(validate=validate.OneOf(ACTIONS))
    status = fields.String(validate=validate.OneOf(["running", "finished"]))
    count = fields.Integer(allow_none=True, metadata=about("How many matched when the sweep began; only for a resend."))
    changed = fields.Integer(metadata=about("How many deliveries have changed so far."))
    skipped = fields.Integer(metadata=about("How many were left because their bodies are gone."))
    statuses = fields.List(fields.String())
    kinds = fields.List(fields.String(), allow_none=True)
    since = time("Only deliveries created at this time or later.", allow_none=True)
    until = time("Only deliveries created before this time.", allow_none=True)
    created_at = time("When the sweep began.")
    finished_at = time("When the sweep ended.", allow_none=True)


def represent(sweep: Sweep) -> dict[str, Any]:
    """Returns the sweep as the API shows it."""
    return SweepSchema.of(sweep, status="running" if sweep.finished_at is None else "finished", count=sweep.matched)


def work(endpoint_id: str) -> None:
    """Continues the endpoint's sweeps, oldest first, until none are left or the time slice is over."""
    mailbox.serve(MAIL, endpoint_id, 1, _step)


@dataclass(frozen=True, slots=True)
class _Found:
    """The statuses of locked deliveries by identifier, oldest first.

    `skipped`: how many more were left out because they have no body. `position`: the sweep's new position.
    """

    statuses: Mapping[str, str]
    skipped: int
    position: str
    is_last: bool


def _step(claimed: Sequence[Claimed]) -> None:
    with transaction():
        if not mailbox.holding(MAIL, claimed):
            log.warning("sweep.not_held", sweep=claimed[0].id, endpoint=claimed[0].owner)
            return
        sweep = Sweep.get_by_id(claimed[0].id)
        found = _next(sweep) if _is_wanted(sweep) else _Found({}, 0, sweep.position, is_last=True)
        if found.statuses:
            _ACTIONS[sweep.action](found.statuses)
        _save(sweep, found)
    if found.statuses:
        lanes.ring([sweep.endpoint_id])
    if found.is_last:
        log.info("sweep.finished", request_id=sweep.trace_id, sweep=sweep.id, action=sweep.action)
    elif found.position == sweep.position:
        sleep(PAUSE_SECONDS)


def _is_wanted(sweep: Sweep) -> bool:
    # Reads the endpoint without a lock: senders lock endpoints before deliveries. If the endpoint changes meanwhile,
    # another sweep follows and corrects this one.
    state = rows("SELECT state FROM endpoints WHERE id = %s", (sweep.endpoint_id,))
    return (state[0][0] if state else "deleted") in WANTED_IN[sweep.action]


def _next(sweep: Sweep) -> _Found:
    """Locks and returns the next deliveries, up to one that another transaction has locked."""
    looked_at = _look(sweep)
    able, parameters = _choice(sweep.action, sweep.statuses)
    locked = resends.lock([id for id, matches in looked_at if matches], able, parameters)
    passed = list(takewhile(lambda row: row[0] in locked or not row[1], looked_at))
    statuses = {id: locked[id].status for id, matches in passed if matches}
    kept = statuses
    if sweep.action == "resend":
        with_body = resends.with_bodies({locked[id].event_id for id in statuses})
        kept = {id: status for id, status in statuses.items() if locked[id].event_id in with_body}
    return _Found(
        kept,
        skipped=len(statuses) - len(kept),
        position=passed[-1][0] if passed else sweep.position,
        is_last=len(passed) == len(looked_at) < STEP,
    )


def _look(sweep: Sweep) -> list[tuple[str, bool]]:
    """Returns the next STEP deliveries in the index, and whether the sweep applies to each."""
    chosen, parameters = _choice(sweep.action, sweep.statuses, sweep.kinds, sweep.since, sweep.until)
    bounds = (sweep.endpoint_id, sweep.position, sweep.endpoint_id, sweep.last_id, sweep.position, sweep.last_id)
    # The condition of the index deliveries_undelivered. Delivered ones are only in the index of all deliveries.
    condition = "true" if "delivered" in sweep.statuses else "status IN ('pending', 'held', 'failed')"
    ranges = [
        _RANGE.format(chosen=chosen, column=column, value=value, condition=condition)
        for column, value in _walks(sweep.statuses)
    ]
    return rows(
        f"SELECT id, matches FROM ({' UNION ALL '.join(ranges)}) AS looked_at ORDER BY id LIMIT %s",
        (*(sweep.created_at, *parameters, *bounds, STEP) * len(ranges), STEP),
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


def _save(sweep: Sweep, found: _Found) -> None:
    count(
        """
        UPDATE sweeps
        SET position = %(position)s, changed = changed + %(changed)s, skipped = skipped + %(skipped)s,
            due_at = CASE WHEN NOT %(is_last)s THEN due_at END, leased_until = NULL,
            finished_at = CASE WHEN %(is_last)s THEN clock_timestamp() END
        WHERE id = %(id)s
        """,
        {**asdict(found), "changed": len(found.statuses), "id": sweep.id},
    )


def _choice(
    action: str,
    statuses: Sequence[str],
    kinds: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[str, list[Any]]:
    """Returns the SQL condition for the action's deliveries, and its parameters."""
    conditions = {
        "deliveries.status = ANY(%s)": list(statuses),
        "deliveries.kind = ANY(%s)": kinds,
        "deliveries.created_at >= %s": since,
        "deliveries.created_at < %s": until,
    }
    given = {condition: value for condition, value in conditions.items() if value is not None}
    # A pending delivery that waits for no retry is due or in progress, and is sent anyway.
    able = ["(deliveries.status <> 'pending' OR deliveries.next_attempt_at IS NOT NULL)"] if action == "resend" else []
    return " AND ".join([*given, *able]), list(given.values())


def _set_aside(status: str, deliveries: Mapping[str, str]) -> None:
    set_aside = "UPDATE deliveries SET status = %s, due_at = NULL, next_attempt_at = NULL WHERE id = ANY(%s)"
    count(set_aside, (status, list(deliveries)))


def _release(deliveries: Mapping[str, str]) -> None:
    # One microsecond apart, to keep the order. An attempt in progress keeps its lease.
    count(
        """
        UPDATE deliveries SET status = 'pending', due_at = now() + place * interval '1 microsecond'
        FROM unnest(%s::text[]) WITH ORDINALITY AS released(id, place)
        WHERE deliveries.id = released.id AND deliveries.id = ANY(%s)
        """,
        (list(deliveries), list(deliveries)),
    )


_ACTIONS: Mapping[str, Callable[[Mapping[str, str]], object]] = {
    # The lease stays, so that the outcome of an attempt in progress is still recorded.
    "hold": partial(_set_aside, "held"),
    "cancel": partial(_set_aside, "cancelled"),
    "release": _release,
    "resend": resends.send_again,
}
