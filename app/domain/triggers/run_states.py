"""States of runs: how runs begin and change, who may enter, and how the API shows a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple

from marshmallow import fields, validate

from app import bounds, mailbox
from app.database import database, rows
from app.domain.contacts import contacts
from app.domain.triggers import goal_times
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.mailbox import Mail, Waiting
from app.models import sets
from app.models.automations import Counted, Enrolment
from app.models.contacts import Contact
from app.models.runs import FAILURE_CODES, STATUSES, Run
from app.models.sets import Key


class Carried(NamedTuple):
    """The columns of a run that are loaded with its claim."""

    contact_id: str
    automation_id: str


# Shared, claimed by due time: a run executes under its contact's lock, so a contact's runs never overlap.
MAIL = Mail(table="runs", owner="workspace_id", queue="runs", carries=Carried)
WAITING = Waiting(MAIL, "resume_at")

# The longest chain of automations that start one another.
MOST_DEPTH = 10
# From this depth on, the runs of a chain are counted. A chain that is less deep never has many.
_NEVER_MANY = 3

Reentry = Literal["every", "after_finish", "once"]


@dataclass(frozen=True, slots=True)
class Start:
    """The columns that a run begins with.

    `goal`: the automation's goal. `depth`: 0 if a request or a broadcast starts the run, 1 if a trigger does; each
    automation down a chain adds 1. `step`: the step to begin with; None for the first. With a `step`, `saved` and
    `own_variables` are what the earlier steps left.
    """

    workspace_id: str
    automation_id: str
    version: int
    contact_id: str
    trace_id: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    event: Mapping[str, Any] | None = None
    job_id: str | None = None
    event_id: str | None = None
    parent_id: str | None = None
    is_awaited: bool = False
    depth: int = 0
    run_id: str | None = None
    goal: Mapping[str, Any] | None = None
    step: str | None = None
    saved: Mapping[str, Any] = field(default_factory=dict)
    own_variables: Mapping[str, Any] = field(default_factory=dict)


_GIVEN = [each.name for each in dataclasses.fields(Start) if each.name not in ("run_id", "goal")]


def needs(workspace_id: str, automation_id: str, contact_ids: Collection[str]) -> list[Key]:
    """Returns the keys that beginning runs needs: of the contacts and of their enrolments."""
    return [
        sets.key(model, workspace_id, "id", row_id)
        for each in contact_ids
        for model, row_id in ((Contact, each), (Enrolment, Enrolment.id_of(each, automation_id)))
    ]


def is_overgrown(unit: Unit, start: Start) -> bool:
    """Returns whether the start's chain has RUNS_OF_CHAIN runs of the contact. Counts once per unit."""
    if start.depth < _NEVER_MANY:
        return False
    most, chain = bounds.RUNS_OF_CHAIN.most, ("chain", start.contact_id, start.trace_id)
    if chain not in unit.notes:
        [(number,)] = rows(_OF_CHAIN, (start.trace_id, start.contact_id, most))
        unit.notes[chain] = number
    is_so = unit.notes[chain] >= most
    if is_so:
        bounds.RUNS_OF_CHAIN.reached()
    return bool(is_so)


def keeps_out(unit: Unit, start: Start, reentry: Reentry) -> str | None:
    """Returns the run that keeps the contact out of the automation; None if the contact may enter.

    Raises Busy. The caller's unit must have locked the contact, as for everything in this module.
    """
    enrolment = _enrolment(unit, start)
    if enrolment is None or reentry == "every":
        return None
    return enrolment.run_id if reentry == "once" or enrolment.active else None


def enter(unit: Unit, start: Start, reentry: Reentry) -> None:
    """Begins a run for a trigger. If it may not begin, only counts it as refused. Raises Busy."""
    if start.depth > MOST_DEPTH or is_overgrown(unit, start):
        count_refused(unit, start, "depth")
    elif keeps_out(unit, start, reentry):
        count_refused(unit, start, "reentry")
    else:
        begin(unit, start)


def begin(unit: Unit, start: Start) -> Run:
    """Begins a run. Workers can claim it once the transaction commits."""
    run_id = start.run_id or ids.new("run")
    lasting = timedelta(seconds=start.goal["within_seconds"]) if start.goal else None
    goal_until = lasting and ids.time_of(run_id) + lasting
    run = _made(unit, start, run_id, status="queued", due_at=unit.now, goal_until=goal_until)
    happened = unit.recorder(start.workspace_id).pending
    unit.notes[_begun(run.id)] = happened[-1].id if happened else ""
    enrolment = _enrolment(unit, start)
    active = enrolment.active if enrolment else 0
    unit.put(
        Enrolment(
            id=Enrolment.id_of(run.contact_id, run.automation_id),
            workspace_id=run.workspace_id,
            contact_id=run.contact_id,
            automation_id=run.automation_id,
            run_id=run.id,
            active=active + 1,
        )
    )
    ring(run.workspace_id)
    return run


def is_before(unit: Unit, run: Run, event_id: str) -> bool:
    """Returns whether the run was begun before the event, which this unit has recorded."""
    # Identifiers do not tell the order: the run's start may have been accepted long before it took effect.
    return run.event_id is not None or unit.notes.get(_begun(run.id), "") < event_id


def refuse(unit: Unit, start: Start) -> Run:
    """Records a run that `reentry` refused: cancelled, without effects or events."""
    return _made(
        unit, start, start.run_id or ids.new("run"), status="cancelled", reason="reentry", finished_at=unit.now
    )


def change(unit: Unit, run: Run, **fields: Any) -> Run:
    """Changes `fields` of the run. If its status changes, updates the counts by status."""
    changed = unit.put(run.altered(**fields))
    if changed.status != run.status:
        count(unit, run, run.status, -1)
        count(unit, run, changed.status)
    return changed


def reach_goal(unit: Unit, run: Run, at: datetime) -> Run:
    """Records and counts that the run reached its goal at `at`. Call it once for a run."""
    count(unit, run, "goals")
    if run.is_counted:
        for step, key in goal_times.counted(run.saved, run.created_at, at):
            unit.count(_counted(run, key)._replace(step=step), 1)
    return unit.put(run.altered(goal_until=None, goal_reached_at=at))


def wake(unit: Unit, run: Run, **fields: Any) -> Run:
    """Makes a waiting run due, and changes `fields`. Its step then ends the wait, or waits again."""
    ring(run.workspace_id)
    return change(unit, run, resume_at=None, due_at=unit.now, **fields)


def count(unit: Unit, run: Run, key: str, amount: int = 1) -> None:
    """Adds to a count of the automation's runs, which `counts.py` folds. `key`: a status or `goals`."""
    unit.count(_counted(run, key), amount)


def count_step(unit: Unit, run: Run, key: str, amount: int = 1) -> None:
    """Adds to a count of the run's current step. Does nothing if the run is not counted by version."""
    if run.is_counted:
        unit.count(_counted(run, key)._replace(step=str(run.step)), amount)


def count_refused(unit: Unit, start: Start, reason: Literal["reentry", "depth"]) -> None:
    """Counts a start that was refused without leaving a run."""
    unit.count(Counted(start.workspace_id, start.automation_id, f"refused:{reason}"), 1)


def record(unit: Unit, run: Run, kind: str, automation_name: str) -> None:
    """Records an event about the run, with the run as its cause."""
    contact = unit.get(Contact, run.workspace_id, "id", run.contact_id)
    data = {
        "contact": contacts.represent(contact) if contact else {"id": run.contact_id},
        "automation": {"id": run.automation_id, "name": automation_name, "version": run.version},
        # A run keeps its variables until the erasure of its contact reaches it. Leave them out of the event.
        "run": represent(run) | ({} if contact else {"variables": {}}),
    }
    recorder = unit.recorder(run.workspace_id)
    recorder.cause = cause_of(run)
    recorder.record(kind, data, run.contact_id)


def cause_of(run: Run) -> Cause:
    """Returns the cause to record for everything that the run does."""
    return Cause(None, run.trace_id, run.id, run.depth)


def ring(workspace_id: str) -> None:
    """Rings for the workspace's runs when the transaction commits."""
    database.after_commit(partial(mailbox.ring, MAIL, workspace_id))


REASONS = ("request", "exit", "reentry", "erased", "pause")
EXAMPLE_VARIABLES = {"order": "order-1042"}


class FailureSchema(ResponseBody):
    code = fields.String(validate=validate.OneOf(FAILURE_CODES))
    detail = fields.String(
        allow_none=True,
        metadata=about("A sentence; null once the contact is erased.", example="The contact has been deleted."),
    )
    step = fields.String(allow_none=True, metadata=about("Where it failed.", example="mark"))


class CauseSchema(ResponseBody):
    job_id = fields.String(allow_none=True, metadata=about("The write that started it."))
    event_id = fields.String(allow_none=True, metadata=about("The event that triggered it."))
    run_id = fields.String(allow_none=True, metadata=about("The run that started it, or that it replays."))


class RunSchema(ResponseBody):
    id = fields.String()
    automation_id = fields.String()
    version = fields.Integer(
        allow_none=True, metadata=about("The version of the automation; null until its start takes effect.", example=1)
    )
    contact_id = fields.String()
    conversation_id = fields.String(allow_none=True)
    status = fields.String(validate=validate.OneOf(STATUSES))
    reason = fields.String(
        allow_none=True, validate=validate.OneOf(REASONS), metadata=about("Why it is cancelled or held.", example=None)
    )
    variables = fields.Dict(
        metadata=about("Those that it was started with, and those that it has set.", example=EXAMPLE_VARIABLES)
    )
    resume_at = time("When its wait ends at the latest.", allow_none=True)
    failure = fields.Nested(FailureSchema, allow_none=True)
    result = fields.Dict(
        allow_none=True, metadata=about("What its `stop` returns; null: nothing.", example={"plan": "gold"})
    )
    cause = fields.Nested(CauseSchema)
    created_at = time("When its start was accepted, or its trigger happened.")
    started_at = time("When a worker first claimed it.", allow_none=True)
    finished_at = time("When it ended.", allow_none=True)
    goal_reached_at = time("When the event happened that is the automation's goal.", allow_none=True)


def represent(run: Run) -> dict[str, Any]:
    """Returns the run as the API shows it, without its log."""
    cause = {"job_id": run.job_id, "event_id": run.event_id, "run_id": run.parent_id}
    return RunSchema.of(run, cause=cause, variables={**run.variables, **run.own_variables})


def _counted(run: Run, key: str) -> Counted:
    if not run.is_counted:
        return Counted(run.workspace_id, run.automation_id, key)
    hour = run.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return Counted(run.workspace_id, run.automation_id, key, run.version, hour)


def _begun(run_id: str) -> tuple[str, str]:
    """Returns the key of the note that holds the last event before the run began."""
    return ("begun", run_id)


def _enrolment(unit: Unit, start: Start) -> Enrolment | None:
    return unit.get(Enrolment, start.workspace_id, "id", Enrolment.id_of(start.contact_id, start.automation_id))


def _made(unit: Unit, start: Start, run_id: str, **columns: Any) -> Run:
    run = Run(
        id=run_id,
        is_counted=True,
        created_at=ids.time_of(run_id),  # the time at which the start was accepted
        **{name: getattr(start, name) for name in _GIVEN},
        **columns,
    )
    unit.put(run)
    count(unit, run, run.status)
    return run


# Looks only at the contact's latest runs: a chain that still grows has its runs among them.
_OF_CHAIN = """
    SELECT count(*) FILTER (WHERE trace_id = %s)
    FROM (SELECT trace_id FROM runs WHERE contact_id = %s ORDER BY id DESC LIMIT %s) AS latest
"""
