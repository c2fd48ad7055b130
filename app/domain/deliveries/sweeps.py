"""Sweeps: long changes of an endpoint's deliveries, in small transactions, exact and resumable.

A sweep goes through the endpoint's deliveries by identifier, from `position` to `last_id`. Each transaction changes
some of them and moves the position, so that every delivery is changed exactly once, even if workers die. An endpoint's
sweeps are ordered mail: one worker at a time, oldest first.

A sweep covers the deliveries that existed when it began: none after the last identifier, and none made later with a
smaller identifier, because another machine's clock is behind. A delivery whose transaction was uncommitted at that
moment may be missed. Where that matters, for stopped and deleted endpoints, the scheduler finds it (`begin_missing`)
and starts another sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from marshmallow import fields, validate

from app import mailbox
from app.database import count, database, rows
from app.domain.deliveries.resends import RESENDABLE
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.mailbox import Mail
from app.models.sweeps import Sweep

MAIL = Mail(table="sweeps", owner="endpoint_id", queue="sweeps", order="id", exclusive=True)
# The endpoint's state that each action requires. In any other state, the sweep ends.
WANTED_IN = {"hold": ("stopped",), "cancel": ("deleted",), "release": ("active",), "resend": ("active",)}
# The sweep that an endpoint with mail needs in each state, and the statuses that it changes.
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
    chosen, parameters = choice("resend", **filters)
    counted = f"SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND {chosen}"
    return int(rows(counted, (endpoint_id, *parameters))[0][0])


def count_resendable(endpoint_id: str, **filters: Any) -> tuple[int, int]:
    """Counts the deliveries that a resend would send now, and those that match but have no body."""
    chosen, parameters = choice("resend", **filters)
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
    """Returns the sweep as in the API."""
    return SweepSchema.of(sweep, status="running" if sweep.finished_at is None else "finished", count=sweep.matched)


def choice(
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
    able = [RESENDABLE] if action == "resend" else []
    return " AND ".join([*given, *able]), list(given.values())
