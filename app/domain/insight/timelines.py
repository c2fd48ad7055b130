"""Timelines of contacts: writes, events, deliveries, runs and their steps, newest first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from peewee import Tuple

from app.database import rows
from app.lib import ids
from app.models.deliveries import Delivery
from app.models.events import Event
from app.models.jobs import Job
from app.models.runs import Run, RunStep

# Writes are included with the events they caused, and steps with their runs.
SOURCES = ("events", "deliveries", "runs")
# A timeline includes the steps of at most this many unfinished runs, and of this many latest runs.
MOST_RUNS = 50
_PLACE = re.compile(r"[0-7][0-9a-z]{25}[01]")
# The columns of events that a timeline needs. The body is left out, as it may be long.
_EVENT = (Event.id, Event.kind, Event.job_id, Event.run_id, Event.created_at)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a timeline.

    `what`: write, event, delivery, run or step; `row`: the job, the event and so on. `place` orders the entries; newer
    ones have higher places. Identifiers are ordered by time, whatever their prefix; a write is directly below the first
    event or run that it caused.
    """

    place: str
    what: str
    at: datetime
    row: Any


def newest(
    workspace_id: str, contact_id: str, after: str | None, limit: int, sources: Collection[str] = SOURCES
) -> list[Entry]:
    """Returns the first `limit` entries after `after`, newest first, in at most five statements.

    Writes that changed nothing are excluded. Failed ones are included while their payload names the contact.
    """
    cursor = after if after and _PLACE.fullmatch(after) else None
    reader = _Reader(workspace_id, contact_id, cursor[:26] if cursor else "~", limit + 1)
    events = reader.newest(Event, "evt", *_EVENT) if "events" in sources else []
    runs = reader.newest(Run, "run") if "runs" in sources else []
    found = [Entry(_place(event.id), "event", event.created_at, event) for event in events]
    found += (Entry(_place(run.id), "run", run.created_at, run) for run in runs)
    if "runs" in sources:
        found += (Entry(_place(step.id), "step", step.at, step) for step in reader.steps())
    if "events" in sources:
        found += reader.writes(_first_results(*events, *runs))
    if "deliveries" in sources:
        sent = reader.newest(Delivery, "dlv")
        found += (Entry(_place(delivery.id), "delivery", delivery.created_at, delivery) for delivery in sent)
    found = [entry for entry in found if cursor is None or entry.place < cursor]
    return sorted(found, key=lambda entry: entry.place, reverse=True)[:limit]


def labels(workspace_id: str, entries: Iterable[Entry]) -> dict[str, str]:
    """Returns the addresses of endpoints and names of automations in the entries, by identifier."""
    endpoint_ids = {entry.row.endpoint_id for entry in entries if entry.what == "delivery"}
    automation_ids = {entry.row.automation_id for entry in entries if entry.what == "run"}
    if not endpoint_ids and not automation_ids:
        return {}
    named = """
        SELECT id, address FROM endpoints WHERE id = ANY(%s) AND workspace_id = %s
        UNION ALL SELECT id, name FROM automations WHERE id = ANY(%s) AND workspace_id = %s
    """
    return dict(rows(named, (list(endpoint_ids), workspace_id, list(automation_ids), workspace_id)))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a contact's rows at or below a place, `limit` of each kind, each by an index."""

    workspace_id: str
    contact_id: str
    suffix: str
    limit: int

    def newest(self, model: Any, prefix: str, *columns: Any) -> list[Any]:
        """Returns the newest rows of a table that has an index by contact."""
        # Whole index tuples are compared, so that the planner reads the index in order.
        pair = Tuple(model.contact_id, model.id)
        found = model.select(*columns).where(
            model.workspace_id == self.workspace_id,
            model.contact_id.is_null(False),
            pair >= Tuple(self.contact_id, ""),
            pair <= Tuple(self.contact_id, f"{prefix}_{self.suffix}"),
        )
        return list(found.order_by(model.contact_id.desc(), model.id.desc()).limit(self.limit))

    def steps(self) -> list[RunStep]:
        """Returns the newest entries of the logs of the contact's runs."""
        return [RunStep(**dict(zip(_STEP, row, strict=True))) for row in rows(_STEPS, self._values())]

    def writes(self, first_results: Mapping[str, str]) -> list[Entry]:
        """Returns entries for the jobs in `first_results`, and for the contact's waiting and failed jobs."""
        found = rows(_JOBS, self._values() | {"job_ids": list(first_results)})
        jobs = [Job(**dict(zip(_JOB, row, strict=True))) for row in found]
        return [Entry(first_results.get(job.id) or _place(job.id), "write", job.created_at, job) for job in jobs]

    def _values(self) -> dict[str, Any]:
        return {
            "workspace_id": self.workspace_id,
            "contact_id": self.contact_id,
            "last_job_id": f"job_{self.suffix}",
            "last_run_id": f"run_{self.suffix}",
            "last_step_id": f"stp_{self.suffix}",
            "limit": self.limit,
            "runs": MOST_RUNS,
        }


def place_of(at: datetime) -> str:
    """Returns the lowest place that an entry of that time, or a later one, can have."""
    return ids.bound("", at)[1:] + "0"


def _place(identifier: str) -> str:
    return identifier.rpartition("_")[2] + "1"


def _first_results(*results: Any) -> dict[str, str]:
    """Returns the place of each job that caused `results`: below the oldest of its results."""
    newest_first = sorted(results, key=lambda row: _place(row.id), reverse=True)
    return {row.job_id: row.id.rpartition("_")[2] + "0" for row in newest_first if row.job_id}


_STEP = ("id", "run_id", "number", "step", "kind", "status", "at", "detail")
_STEPS = f"""
    WITH near AS MATERIALIZED (
        (SELECT id FROM runs
        WHERE contact_id = %(contact_id)s AND workspace_id = %(workspace_id)s AND finished_at IS NULL
        LIMIT %(runs)s)
        UNION
        (SELECT id FROM runs
        WHERE workspace_id = %(workspace_id)s
            AND (contact_id, id) >= (%(contact_id)s, '') AND (contact_id, id) <= (%(contact_id)s, %(last_run_id)s)
        ORDER BY contact_id DESC, id DESC LIMIT %(runs)s)
    )
    SELECT {", ".join(f"logged.{name}" for name in _STEP)} FROM near CROSS JOIN LATERAL (
        SELECT * FROM run_steps WHERE run_id = near.id AND id <= %(last_step_id)s
        ORDER BY run_id DESC, number DESC LIMIT %(limit)s) AS logged
    ORDER BY logged.id DESC LIMIT %(limit)s
"""
# Selects no payload, because it may be long.
_JOB = ("id", "workspace_id", "kind", "status", "resource_type", "resource_id", "problem", "created_at")
_JOBS = f"""
    WITH found AS MATERIALIZED (
        SELECT unnest(%(job_ids)s::text[]) AS id
        UNION
        (SELECT id FROM jobs
        WHERE status = 'failed' AND workspace_id = %(workspace_id)s
            AND (coalesce(payload->>'contact_id', resource_id), id) >= (%(contact_id)s, '')
            AND (coalesce(payload->>'contact_id', resource_id), id) <= (%(contact_id)s, %(last_job_id)s)
        ORDER BY coalesce(payload->>'contact_id', resource_id) DESC, id DESC LIMIT %(limit)s)
        UNION
        (SELECT id FROM jobs
        WHERE resource_id = %(contact_id)s AND due_at IS NOT NULL AND workspace_id = %(workspace_id)s
        LIMIT %(limit)s)
    )
    SELECT {", ".join(f"jobs.{name}" for name in _JOB)} FROM found JOIN jobs USING (id)
    WHERE jobs.workspace_id = %(workspace_id)s
"""
