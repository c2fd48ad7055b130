"""Counts of an automation's version: runs by status; entries, exits, waits and failures by step.

Runs are selected by creation: recent ones by hour, older ones by day (UTC). Everything that a run does is counted under
the hour of its creation. The counts are exact, and the cost of a read does not depend on the number of runs.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from marshmallow import fields

from app.config import settings
from app.database import replica, rows
from app.domain.automations import counts
from app.domain.automations.counts import RunCountsSchema
from app.domain.automations.definitions import programs
from app.domain.automations.steps.base import Step
from app.domain.triggers import goal_times
from app.errors import Fault, Invalid, NotFound
from app.lib.schemas import ResponseBody, about
from app.models.automations import Automation
from app.models.runs import STATUSES, UNFINISHED


class StepCountsSchema(ResponseBody):
    OPTIONAL = ("arms", "arm_goals")

    entered = fields.Integer(metadata=about("How often a run reached it.", example=12))
    left = fields.Integer(metadata=about("How often a run went on from it, or ended with it as planned.", example=9))
    waiting = fields.Integer(metadata=about("How many runs wait in it now.", example=2))
    failed = fields.Integer(metadata=about("How many runs failed in it.", example=1))
    arms = fields.Dict(
        values=fields.Integer(),
        metadata=about("Of a step with steps inside: how often each list of them was taken.", example={"then": 4}),
    )
    arm_goals = fields.Dict(
        values=fields.Integer(),
        metadata=about("Of a split: how many runs reached the goal after each arm.", example={"ten": 2}),
    )


class GoalTimesSchema(ResponseBody):
    known = fields.Integer(metadata=about("Of how many runs the time to the goal is known.", example=3))
    median_seconds = fields.Float(
        allow_none=True, metadata=about("Half of them took no longer; a quarter too much at most.", example=3_552.7)
    )
    p90_seconds = fields.Float(allow_none=True, metadata=about("Nine of ten took no longer.", example=86_736.2))


class VersionCountsSchema(ResponseBody):
    version = fields.Integer(
        allow_none=True, metadata=about("The version; null if none has been published.", example=1)
    )
    runs = fields.Nested(RunCountsSchema, metadata=about("Its runs by status."))
    goals = fields.Integer(metadata=about("How many of its runs have reached the goal.", example=3))
    goal_times = fields.Nested(GoalTimesSchema, metadata=about("How long its runs took to the goal."))
    steps = fields.Dict(
        values=fields.Nested(StepCountsSchema),
        metadata=about(
            "The counts of each step, by its `id`.",
            example={"mark": {"entered": 12, "left": 9, "waiting": 2, "failed": 1}},
        ),
    )


@replica.may_read
def read(
    automation: Automation, version: int | None = None, since: datetime | None = None, until: datetime | None = None
) -> dict[str, Any]:
    """Returns the counts as in the API: of the given, the published or the latest version.

    Raises NotFound for an unknown version, and Invalid for times without exact counts.
    """
    _check(since, until)
    number = automation.version or automation.latest_version or None if version is None else version
    if number is None:
        nothing = {"version": None, "runs": dict.fromkeys(STATUSES, 0), "goals": 0}
        return {**nothing, "goal_times": _goal_times({}), "steps": {}}
    if not 1 <= number <= automation.latest_version:
        raise NotFound(f"This automation has no version {number}.")
    values = {"id": automation.id, "version": number, "since": since, "until": until}
    counted = {(step, key): amount for step, key, amount in rows(_READ, values)}
    steps = programs.program_of(automation.id, number).steps
    return {
        "version": number,
        "runs": {status: counted.get(("", status), 0) for status in STATUSES},
        "goals": counted.get(("", "goals"), 0),
        "goal_times": _goal_times(counted),
        "steps": {step.id: _of_step(step, counted) for step in steps.values()},
    }


def unfinished(automation_id: str, versions: Collection[int]) -> dict[int, int]:
    """Returns how many runs of each version have not finished, without zeros."""
    values = {"id": automation_id, "versions": list(versions), "keys": list(UNFINISHED)}
    return {version: amount for version, amount in rows(_UNFINISHED, values) if amount}


def _of_step(step: Step, counted: dict[tuple[str, str], int]) -> dict[str, Any]:
    passed: dict[str, Any] = {key: counted.get((step.id, key), 0) for key in ("entered", "left", "waiting", "failed")}
    if step.inside:
        passed["arms"] = {name: counted.get((step.id, f"arm:{name}"), 0) for name in step.inside}
    if step.kind == "split":
        passed["arm_goals"] = {name: counted.get((step.id, f"{goal_times.IN_ARM}{name}"), 0) for name in step.inside}
    return passed


def _goal_times(counted: dict[tuple[str, str], int]) -> dict[str, Any]:
    by_class = {
        int(key.removeprefix(goal_times.AFTER)): amount
        for (step, key), amount in counted.items()
        if not step and key.startswith(goal_times.AFTER)
    }
    return {
        "known": sum(by_class.values()),
        "median_seconds": goal_times.quantile(by_class, 0.5),
        "p90_seconds": goal_times.quantile(by_class, 0.9),
    }


def _check(since: datetime | None, until: datetime | None) -> None:
    hours, days = counts.first_offered()
    faults = []
    for name, at in (("since", since), ("until", until)):
        if at is None:
            continue
        if at < days:
            kept = settings().history_retention_days
            faults.append(Fault(f"/{name}", f"Times are kept for {kept} days. Give a later time, or leave this out."))
        elif at.minute or at.second or at.microsecond:
            faults.append(Fault(f"/{name}", "Give a full hour: runs are counted by the hour."))
        elif at < hours and at.hour:
            faults.append(Fault(f"/{name}", f"Give midnight (UTC): before {hours:%Y-%m-%d}, days are counted."))
    if not faults and since is not None and until is not None and since >= until:
        faults.append(Fault("/until", "This must be after since."))
    if faults:
        raise Invalid(*faults)


def _from(name: str, amount: str) -> str:
    """Returns SQL that counts the runs since the parameter `name`, a time; no rows if it is null."""
    at = f"%({name})s::timestamptz"
    day = f"date_trunc('day', {at} + interval '1 day' - interval '1 microsecond', 'UTC')"
    of_version = f"SELECT step, key, {amount} FROM run_counts WHERE automation_id = %(id)s AND version = %(version)s"
    return f"""
        {of_version} AND grain = 'hour' AND starts_at >= {at} AND starts_at < {day}
        UNION ALL {of_version} AND grain = 'day' AND starts_at >= {day}"""


_READ = f"""
    SELECT step, key, sum(amount)::bigint FROM (
        SELECT step, key, amount FROM run_counts
        WHERE automation_id = %(id)s AND version = %(version)s AND grain = 'all' AND %(since)s::timestamptz IS NULL
        UNION ALL {_from("since", "amount")}
        UNION ALL {_from("until", "-amount")}
        UNION ALL
        SELECT step, key, amount FROM automation_deltas
        WHERE automation_id = %(id)s AND version = %(version)s
            AND hour >= coalesce(%(since)s::timestamptz, '-infinity')
            AND hour < coalesce(%(until)s::timestamptz, 'infinity')) AS counted
    GROUP BY step, key
"""

_UNFINISHED = """
    SELECT version, sum(amount)::bigint FROM (
        SELECT version, amount FROM run_counts
        WHERE automation_id = %(id)s AND version = ANY(%(versions)s) AND grain = 'all' AND step = ''
            AND key = ANY(%(keys)s)
        UNION ALL
        SELECT version, amount FROM automation_deltas
        WHERE automation_id = %(id)s AND version = ANY(%(versions)s) AND step = '' AND key = ANY(%(keys)s)) AS counted
    GROUP BY version
"""
