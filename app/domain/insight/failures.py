"""Groups failures by cause: which endpoints, jobs and runs fail, since when, and how often."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from app.database import now, replica, rows
from app.domain.insight.trends import DEFAULT, Window

Kind = Literal["delivery", "job", "run"]
KINDS: tuple[Kind, ...] = ("delivery", "job", "run")
Order = Literal["largest", "newest"]

# How many groups are shown: the ones that failed last.
MOST_GROUPS = 100
# For a custom range, how many groups are examined: the groups that failed last after it began.
MOST_LOOKED_AT = 2_000
# Counting a group's current failures stops at this number ("10,000+"), and earlier with many groups.
MOST_COUNTED = 10_000
MOST_COUNTED_TOGETHER = 500_000
# A group is ongoing if it failed within this time, unless its endpoint is stopped or deleted.
GOES_ON = timedelta(minutes=15)
_ByStep = dict[datetime, tuple[int, int]]  # failures, and final ones among them, by the step's beginning


@dataclass(frozen=True, slots=True)
class Group:
    """Failures with one cause.

    `subject`: the endpoint, the kind of job or the automation; `subject_name`: its name for people. `code` and `status`
    are the cause; `status` is None if there was no answer. `failed`: attempts, jobs or runs that failed in the window;
    `final`: how many of these were the last attempt of their delivery; `counts`: `failed` by step. `failed_now` and
    `held_now`: deliveries whose last attempt had this cause, `counted_to` at most; None for jobs and runs, which stay
    failed. `untried_now`: deliveries that the endpoint holds without an attempt, and so without a cause.
    """

    id: int
    kind: Kind
    workspace_id: str
    workspace_name: str
    subject: str
    subject_name: str | None
    code: str
    status: int | None
    first_seen_at: datetime
    last_seen_at: datetime
    goes_on: bool = False
    failed: int = 0
    final: int = 0
    counts: Sequence[int] = ()
    failed_now: int | None = None
    held_now: int | None = None
    untried_now: int | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a window that began at `since`; their counts have one value for each of `steps`.

    `until` is the end of the last step. `has_more`: there are other groups, which failed earlier. A current number
    above `counted_to` means only that there are more.
    """

    since: datetime
    until: datetime
    steps: Sequence[datetime]
    groups: Sequence[Group]
    has_more: bool
    counted_to: int = MOST_COUNTED


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stopped endpoint, and how many deliveries are held for it, MOST_COUNTED at most."""

    endpoint_id: str
    workspace_id: str
    workspace_name: str
    address: str
    reason: str | None
    stopped_at: datetime | None
    held_now: int


@replica.may_read
def groups(
    workspace_id: str | None = None,
    window: Window = DEFAULT,
    *,
    kind: Kind | None = None,
    order: Order = "largest",
    at: datetime | None = None,
    is_past: bool = False,
) -> Groups:
    """Returns the groups of failures in a window, of a workspace or (None) of all.

    Returns the MOST_GROUPS that failed last. `at`: a time in the window's last step. `is_past`: that step may be over.
    Sorts ongoing groups first, and then by size or by the time of the last failure. Takes a few statements. Their cost
    depends on the number of groups, not of failures.
    """
    at = at or now()
    since, steps = window.since(at), window.steps(at)
    until = steps[-1] + window.step
    conditions = ["last_seen_at >= %(since)s"]
    conditions += ["failure_groups.workspace_id = %(workspace_id)s"] if workspace_id is not None else []
    conditions += ["failure_groups.kind = %(kind)s"] if kind is not None else []
    values = {"since": since, "until": until, "workspace_id": workspace_id, "kind": kind, "limit": MOST_GROUPS + 1}
    values["looked_at"] = MOST_LOOKED_AT
    newest_groups = _NEWEST_IN.format(grain=window.grain) if is_past else _NEWEST
    found = rows(_NAMED.format(newest=newest_groups.format(conditions=" AND ".join(conditions))), values)
    if not found:
        return Groups(since, until, steps, [], False)
    newest = found[:MOST_GROUPS]
    counted = _counted([id for id, *_ in newest], window, since, until)
    most = min(MOST_COUNTED, MOST_COUNTED_TOGETHER // len(newest))
    present = _now([row for row in newest if row[1] == "delivery"], most)
    present_time = now() if is_past else at
    made = [_group(row, present_time, counted[row[0]], steps, present.get(row[0], {})) for row in newest]
    made.sort(key=lambda group: (group.goes_on, group.failed if order == "largest" else 0, group.last_seen_at))
    return Groups(since, until, steps, made[::-1], len(found) > MOST_GROUPS, most)


def last_failure(workspace_id: str | None = None, kind: Kind | None = None) -> datetime | None:
    """Returns the time of the last kept failure, of a workspace or (None) of all; None if none.

    With a kind, only the newest causes are searched.
    """
    conditions = ["workspace_id = %(workspace_id)s"] if workspace_id is not None else []
    values = {"workspace_id": workspace_id, "kind": kind, "most": MOST_LOOKED_AT}
    [(found,)] = rows(_LAST.format(where=f"WHERE {' AND '.join(conditions)}" if conditions else ""), values)
    return found  # type: ignore[no-any-return]


def stopped(workspace_id: str | None = None, limit: int = 50) -> list[Stopped]:
    """Returns the newest `limit` stopped endpoints, of a workspace or (None) all, last stop first."""
    of_workspace = "" if workspace_id is None else "AND endpoints.workspace_id = %(workspace_id)s"
    values = {"workspace_id": workspace_id, "limit": limit, "most": MOST_COUNTED + 1}
    found = [Stopped(*row) for row in rows(_STOPPED.format(of_workspace=of_workspace), values)]
    return sorted(found, key=lambda each: (each.stopped_at is not None, each.stopped_at), reverse=True)


def _group(
    row: Sequence[Any], at: datetime, counted: _ByStep, steps: Sequence[datetime], present: Mapping[str, int]
) -> Group:
    _, kind, *_, last_seen_at, is_stopped = row
    is_delivery = kind == "delivery"
    return replace(
        Group(*row[:-1]),
        goes_on=last_seen_at > at - GOES_ON and not is_stopped,
        failed=sum(failed for failed, _ in counted.values()),
        final=sum(final for _, final in counted.values()),
        counts=[counted.get(step, (0, 0))[0] for step in steps],
        failed_now=present.get("failed", 0) if is_delivery else None,
        held_now=present.get("held", 0) if is_delivery else None,
        untried_now=present.get("untried", 0) if is_delivery else None,
    )


def _counted(group_ids: Sequence[int], window: Window, since: datetime, until: datetime) -> dict[int, _ByStep]:
    counted: dict[int, _ByStep] = {id: {} for id in group_ids}
    values = {"step": window.step, "ids": list(group_ids), "since": since, "until": until}
    for id, step, failed, final in rows(_COUNTS.format(grain=window.grain), values):
        counted[id][step] = failed, final
    return counted


def _now(groups: Collection[Sequence[Any]], most: int) -> dict[int, dict[str, int]]:
    """Counts the failed, held and untried deliveries of each group now, up to `most` + 1."""
    if not groups:
        return {}
    values = {
        "ids": [row[0] for row in groups],
        "subjects": [row[4] for row in groups],
        "codes": [row[6] for row in groups],
        "answers": [row[7] or 0 for row in groups],
        "most": most + 1,
    }
    found: dict[int, dict[str, int]] = {}
    for id, status, number in rows(_NOW, values):
        found.setdefault(id, {})[status] = number
    return found


_NEWEST = "SELECT * FROM failure_groups WHERE {conditions} ORDER BY last_seen_at DESC LIMIT %(limit)s"

# Examines the MOST_LOOKED_AT groups with the latest failures, and selects the groups that failed within the range.
_NEWEST_IN = """
    SELECT * FROM (
        SELECT * FROM failure_groups WHERE {{conditions}} ORDER BY last_seen_at DESC LIMIT %(looked_at)s
    ) AS looked_at
    WHERE first_seen_at < %(until)s AND EXISTS (
        SELECT 1 FROM failure_{grain} AS counted
        WHERE group_id = looked_at.id AND starts_at >= %(since)s AND starts_at < %(until)s)
    ORDER BY last_seen_at DESC LIMIT %(limit)s
"""

_LAST = """
    SELECT max(last_seen_at) FROM (
        SELECT kind, last_seen_at FROM failure_groups {where} ORDER BY last_seen_at DESC LIMIT %(most)s) AS newest
    WHERE %(kind)s::text IS NULL OR kind = %(kind)s
"""

_NAMED = """
    WITH newest AS ({newest})
    SELECT newest.id, newest.kind, newest.workspace_id, coalesce(workspaces.name, newest.workspace_id), subject,
        coalesce(address, automations.name), code, nullif(newest.status, 0), first_seen_at, last_seen_at,
        coalesce(endpoints.state <> 'active', false)
    FROM newest
    LEFT JOIN workspaces ON workspaces.id = newest.workspace_id
    LEFT JOIN endpoints ON newest.kind = 'delivery' AND endpoints.id = subject
    LEFT JOIN automations ON newest.kind = 'run' AND automations.id = subject
    ORDER BY last_seen_at DESC
"""

_COUNTS = """
    SELECT group_id, date_bin(%(step)s, starts_at, timestamptz '2000-01-01 00:00:00+00') AS step,
        sum(failed)::int, sum(final)::int
    FROM failure_{grain} WHERE group_id = ANY(%(ids)s) AND starts_at >= %(since)s AND starts_at < %(until)s
    GROUP BY group_id, step
"""

# The condition is that of the index `deliveries_failures`, which has all columns read here; PostgreSQL uses the index
# only if a query repeats its condition.
_OF_GROUP = """
    SELECT id, state.status, found.number
    FROM unnest(%(ids)s::bigint[], %(subjects)s::text[], %(codes)s::text[], %(answers)s::int[])
        AS sought(id, subject, code, answer)
    CROSS JOIN (VALUES ('failed'), ('held')) AS state(status)
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM (
            SELECT 1 FROM deliveries
            WHERE endpoint_id = sought.subject AND deliveries.status = state.status
                AND deliveries.status IN ('failed', 'held') AND last_error_code = sought.code AND last_status {}
            LIMIT %(most)s) AS first) AS found
    WHERE sought.answer {}
"""
_UNTRIED = """
    SELECT id, 'untried', found.number
    FROM unnest(%(ids)s::bigint[], %(subjects)s::text[]) AS sought(id, subject)
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM (
            SELECT 1 FROM deliveries
            WHERE endpoint_id = sought.subject AND deliveries.status = 'held'
                AND deliveries.status IN ('failed', 'held') AND last_error_code IS NULL
            LIMIT %(most)s) AS first) AS found
"""
_NOW = " UNION ALL ".join([_OF_GROUP.format("= sought.answer", "<> 0"), _OF_GROUP.format("IS NULL", "= 0"), _UNTRIED])

_STOPPED = """
    SELECT endpoints.id, endpoints.workspace_id, workspaces.name, address, stop_reason, stopped_at, held.number
    FROM (
        SELECT * FROM endpoints WHERE state = 'stopped' {of_workspace} ORDER BY id DESC LIMIT %(limit)s
    ) AS endpoints
    JOIN workspaces ON workspaces.id = endpoints.workspace_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS number FROM (
            SELECT 1 FROM deliveries
            WHERE endpoint_id = endpoints.id AND status = 'held' AND status IN ('failed', 'held')
            LIMIT %(most)s) AS first) AS held
"""
