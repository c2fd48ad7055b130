"""Awaited events: stores which event a run waits for, and recognizes it.

While a run waits, its step keeps in `saved` what it waits for (`awaited`, a trigger), since when (`since`), and the
events that its transaction had recorded by then (`before`). The run's own events do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.database import rows
from app.domain.triggers.automation_listeners import ObservedEvent, is_of, of_run
from app.domain.work.events import Cause, NewEvent
from app.domain.work.units import Unit
from app.lib import ids
from app.lib.json import timestamp
from app.models.runs import Run

# How many of a contact's latest events `missed` looks through.
MOST_MISSED = 100


def expect(unit: Unit, run: Run, awaited: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state that the step of `run` saves when it starts to wait."""
    before = [each.id for each in _recorded(unit, run) if each.kind == awaited["event"]]
    return {"awaited": dict(awaited), "since": timestamp(unit.now), "before": before}


def is_awaited(run: Run, observed: ObservedEvent) -> bool:
    """Returns whether `run` waits for this event and has no answer yet."""
    if run.waits_for != "event" or run.answer is not None:
        return False
    waiting = run.saved[str(run.step)]
    if observed.event.id in waiting["before"]:
        return False
    # The fan-out may pass on an event that was recorded before the run began to wait. Such an event does not count.
    if observed.recorded_at is not None and observed.recorded_at <= datetime.fromisoformat(waiting["since"]):
        return False
    return _is(run, observed, waiting["awaited"])


def missed(unit: Unit, run: Run, awaited: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the first matching event since the run was triggered or started; None if there is none.

    Call it for the first step of a run only. A later step runs in the same transaction as the step before it, so no
    event can come between them. Looks through the contact's latest MOST_MISSED events.
    """
    after = (run.event_id or run.id).partition("_")[2]
    lowest = ids.around("evt", ids.time_of(f"evt_{after}"), -1)
    found = rows(_LATEST, {"contact": run.contact_id, "from": lowest, "most": MOST_MISSED})
    stored = [
        NewEvent(id, kind, run.contact_id, Cause(job_id, trace_id, run_id, depth), bytes(body), at, tag=tag)
        for id, kind, job_id, trace_id, run_id, depth, body, at, tag in reversed(found)
    ]
    for event in (*stored, *_recorded(unit, run)):
        observed = ObservedEvent(run.workspace_id, event)
        if event.id.partition("_")[2] > after and observed.keys and _is(run, observed, awaited):
            return observed.document
    return None


def _recorded(unit: Unit, run: Run) -> list[NewEvent]:
    """Returns the events of the run's contact that the unit has recorded but not written."""
    return [each for each in unit.recorder(run.workspace_id).pending if each.contact_id == run.contact_id]


def _is(run: Run, observed: ObservedEvent, awaited: Mapping[str, Any]) -> bool:
    return observed.event.cause.run_id != run.id and is_of(awaited, observed, observed.variables | of_run(run))


_LATEST = """
    SELECT id, kind, job_id, trace_id, run_id, depth, body, created_at,
        convert_from(body, 'UTF8')::json->'data'->>'tag'
    FROM events WHERE contact_id = %(contact)s AND id >= %(from)s ORDER BY id DESC LIMIT %(most)s
"""
