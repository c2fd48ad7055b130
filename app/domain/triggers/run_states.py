"""States of runs: how a run begins and changes, who may enter an automation, and what the API shows of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
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
from app.models.automations import Counted, Enrolment
from app.models.contacts import Contact
from app.models.runs import FAILURE_CODES, STATUSES, Run


class Carried(NamedTuple):
    """What a claimed run brings along."""

    contact_id: str
    automation_id: str


# Shared, and taken by time: a run executes under its contact's lock, so a contact's runs never do so side by side.
MAIL = Mail(table="runs", owner="workspace_id", queue="runs", carries=Carried)
WAITING = Waiting(MAIL, "resume_at")

# The longest chain of automations that start one another.
MOST_DEPTH = 10
# From this depth on the runs of a chain are counted.
_NEVER_MANY = 3

Reentry = Literal["every", "after_finish", "once"]


@dataclass(frozen=True, slots=True)
class Start:
    """What a run begins with, by the names of its columns.

    `goal`: that of the automation. `depth`: how many automations lie between it and the outside. `step`: the step that
    it begins with, if not the first; then `saved` and `own_variables` are what those before it left.
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


def is_overgrown(unit: Unit, start: Start) -> bool:
    """Whether as many runs of the contact as may follow from the same cause. Counts once for each unit."""
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
    """The run that keeps the contact from entering the automation again; None if nothing does. Raises Busy.

    The unit must have locked the contact, as for everything in this module.
    """
    enrolment = _enrolment(unit, start)
    if enrolment is None or reentry == "every":
        return None
    return enrolment.run_id if reentry == "once" or enrolment.active else None


def enter(unit: Unit, start: Start, reentry: Reentry) -> None:
    """Begins a run that a trigger starts. One that may not begin leaves only a count. Raises Busy."""
    if start.depth > MOST_DEPTH or is_overgrown(unit, start):
        count_refused(unit, start, "depth")
    elif keeps_out(unit, start, reentry):
        count_refused(unit, start, "reentry")
    else:
        begin(unit, start)


def begin(unit: Unit, start: Start) -> Run:
    """Begins a run, which is mail from the commit on."""
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
    """Whether the run was begun before the event, which the unit has recorded."""
    # The identifier of a run is no help: its start may have been accepted long before.
    return run.event_id is not None or unit.notes.get(_begun(run.id), "") < event_id


def refuse(unit: Unit, start: Start) -> Run:
    """Records a run that `reentry` refused: cancelled, without an effect or an event."""
    return _made(
        unit, start, start.run_id or ids.new("run"), status="cancelled", reason="reentry", finished_at=unit.now
    )


def change(unit: Unit, run: Run, **fields: Any) -> Run:
    """Puts the run with these fields, and counts a change of its status."""
    changed = unit.put(run.altered(**fields))
    if changed.status != run.status:
        count(unit, run, run.status, -1)
        count(unit, run, changed.status)
    return changed


def reach_goal(unit: Unit, run: Run, at: datetime) -> Run:
    """Puts the run as having reached its goal then, which counts once. It must not have reached it before."""
    count(unit, run, "goals")
    if run.is_counted:
        for step, key in goal_times.counted(run.saved, run.created_at, at):
            unit.count(_counted(run, key)._replace(step=step), 1)
    return unit.put(run.altered(goal_until=None, goal_reached_at=at))


def wake(unit: Unit, run: Run, **fields: Any) -> Run:
    """Makes a run that waits due, with these fields. Its step ends the wait, or begins anew."""
    ring(run.workspace_id)
    return change(unit, run, resume_at=None, due_at=unit.now, **fields)


def count(unit: Unit, run: Run, key: str, amount: int = 1) -> None:
    """Adds to the number of the automation's runs with a status, or of its `goals`, which `counts.py` adds up."""
    unit.count(_counted(run, key), amount)


def count_step(unit: Unit, run: Run, key: str, amount: int = 1) -> None:
    """Adds to what is counted of the run's present step; nothing for a run that is not counted by version."""
    if run.is_counted:
        unit.count(_counted(run, key)._replace(step=str(run.step)), amount)


def count_refused(unit: Unit, start: Start, reason: Literal["reentry", "depth"]) -> None:
    """Counts a start that was refused and leaves no run."""
    unit.count(Counted(start.workspace_id, start.automation_id, f"refused:{reason}"), 1)


def record(unit: Unit, run: Run, kind: str, automation_name: str) -> None:
    """Records an event in the life of the run, with the run as its cause."""
    contact = unit.get(Contact, run.workspace_id, "id", run.contact_id)
    data = {
        "contact": contacts.represent(contact) if contact else {"id": run.contact_id},
        "automation": {"id": run.automation_id, "name": automation_name, "version": run.version},
        # A run keeps what it was started with until the erasure of its contact gets there.
        "run": represent(run) | ({} if contact else {"variables": {}}),
    }
    recorder = unit.recorder(run.workspace_id)
    recorder.cause = cause_of(run)
    recorder.record(kind, data, run.contact_id)


def cause_of(run: Run) -> Cause:
    """The cause of what the run does."""
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
    """The run as the API shows it, without its log."""
    cause = {"job_id": run.job_id, "event_id": run.event_id, "run_id": run.parent_id}
    return RunSchema.of(run, cause=cause, variables={**run.variables, **run.own_variables})


def _counted(run: Run, key: str) -> Counted:
    if not run.is_counted:
        return Counted(run.workspace_id, run.automation_id, key)
    hour = run.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return Counted(run.workspace_id, run.automation_id, key, run.version, hour)


def _begun(run_id: str) -> tuple[str, str]:
    """The note of the last event before a run that the unit has begun."""
    return ("begun", run_id)


def _enrolment(unit: Unit, start: Start) -> Enrolment | None:
    return unit.get(Enrolment, start.workspace_id, "id", Enrolment.id_of(start.contact_id, start.automation_id))


def _made(unit: Unit, start: Start, run_id: str, **columns: Any) -> Run:
    run = Run(
        id=run_id,
        is_counted=True,
        created_at=ids.time_of(run_id),  # of a start, the time at which it was accepted
        **{name: getattr(start, name) for name in _GIVEN},
        **columns,
    )
    unit.put(run)
    count(unit, run, run.status)
    return run


# The latest runs of the contact: those of a chain that grows are among them.
_OF_CHAIN = """
    SELECT count(*) FILTER (WHERE trace_id = %s)
    FROM (SELECT trace_id FROM runs WHERE contact_id = %s ORDER BY id DESC LIMIT %s) AS latest
"""
