"""Executions: claims due runs and takes their steps, many runs per transaction.

A step's changes, its log entry and the run's new position are written in one transaction, and only under the claim and
the contact's lock. So a step takes effect once, and steps of one contact's runs never overlap.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog
from peewee import DatabaseError, InterfaceError

from app import mailbox, metrics
from app.database import transaction
from app.domain.automations import controls
from app.domain.automations.definitions import programs
from app.domain.automations.interpreter import Interpreter
from app.domain.conversations import messages
from app.domain.triggers import batches, run_endings
from app.domain.triggers.run_states import MAIL
from app.domain.work.fairness import HEAVY, TURNS
from app.domain.work.units import Busy, Unit
from app.lib.switching import sharing
from app.logs import tracing
from app.mailbox import Claimed
from app.models import sets
from app.models.automations import Automation, Enrolment
from app.models.contacts import Contact
from app.models.runs import Run
from app.models.sets import Key

if TYPE_CHECKING:
    from app.logs.spans import Spans

log = structlog.get_logger(__name__)

# The most runs that one transaction executes.
BATCH = 100
# The pause before retrying runs whose contacts another transaction has locked.
BUSY_SECONDS = 0.005
# A run fails after this many workers have died while working on it alone.
MOST_DEATHS = 3
_BROKEN = "A fault of Bellhop's stopped this run. Support can see why."


def work(*workspace_ids: str) -> None:
    """Executes the due runs of these workspaces, until none are left or the time slice is over.

    Heavy workspaces come last, separately, and only if a thread is free for them.
    """
    heavy = [each for each in workspace_ids if TURNS.is_heavy(each)]
    mailbox.serve_shared(MAIL, [each for each in workspace_ids if each not in heavy], BATCH, _work_on)
    if heavy:
        with HEAVY.thread(None, MAIL, *heavy) as has_thread, sharing():
            if has_thread:
                mailbox.serve_shared(MAIL, heavy, BATCH, _work_on)


def _work_on(batch: Sequence[Claimed]) -> None:
    began = time.monotonic()
    carry_out = _carry_out_singly if any(claimed.is_suspect for claimed in batch) else _carry_out
    busy = carry_out(batch)
    metrics.RUN_BATCH_SECONDS.observe(time.monotonic() - began)
    if busy:
        mailbox.release(MAIL, busy)
        time.sleep(BUSY_SECONDS)
        for workspace_id in {claimed.owner for claimed in busy}:
            mailbox.ring(MAIL, workspace_id)


def _carry_out_singly(batch: Sequence[Claimed]) -> list[Claimed]:
    """Executes the runs one at a time, because a worker may have died while executing one of them."""
    busy = []
    for claimed in batch:
        with mailbox.in_progress(MAIL, claimed, batch):
            busy += _carry_out([claimed])
    return busy


def _carry_out(batch: Sequence[Claimed]) -> list[Claimed]:
    """Executes the runs in one transaction, each as far as possible; returns the claims to release."""
    batch, began = TURNS.ordered(batch), time.time()
    with transaction():
        light = {claimed.owner for claimed in batch if not TURNS.is_heavy(claimed.owner)}
        tasks = [partial(_carry_on, claimed, was_light=claimed.owner in light) for claimed in batch]
        contacts = [_contact(claimed) for claimed in batch]
        results = batches.run(tasks, contacts, then=partial(_read_runs, batch), in_order=False)
        for number, result in enumerate(results):
            if isinstance(result, Exception) and not isinstance(result, Busy):
                results[number] = _give_up(batch[number], result)
    carried_on = [result for result in results if isinstance(result, Interpreter)]
    for each in carried_on:
        _measure(each)
    if tracing.spans is not None:
        _trace(tracing.spans, carried_on, began)
    return [claimed for claimed, result in zip(batch, results, strict=True) if isinstance(result, Busy)]


def _give_up(claimed: Claimed, error: Exception) -> Interpreter | Exception | None:
    """Fails a run whose changes cannot be written, and drops the changes. Returns the task's result."""
    log.error("run.not_written", run=claimed.id, exc_info=error)
    [result] = batches.run([partial(_carry_on, claimed, is_hopeless=True)], [_contact(claimed)], in_order=False)
    return result


def _contact(claimed: Claimed) -> Key:
    return sets.key(Contact, claimed.owner, "id", claimed.carried.contact_id)


def _read_runs(batch: Sequence[Claimed], unit: Unit) -> None:
    """Reads the runs whose contacts are locked, with enrolments and, if needed, conversations.

    A run whose contact another transaction has locked must not be locked: that transaction may wait for the run.
    """
    ours = [claimed for claimed in batch if unit.is_free(_contact(claimed))]
    keys = [sets.key(Run, claimed.owner, "id", claimed.id) for claimed in ours]
    enrolments = [sets.key(Enrolment, claimed.owner, "id", Enrolment.id_of(*claimed.carried)) for claimed in ours]
    unit.read([*keys, *enrolments])
    runs = [unit.get(Run, *key[1:]) for key in keys if unit.is_free(key)]
    if talking := [run for run in runs if run and programs.program_of(run.automation_id, run.version).talks]:
        messages.prefetch(unit, talking)
    unit.notes |= _automations({claimed.carried.automation_id for claimed in batch})


def _automations(wanted: Collection[str]) -> Mapping[tuple[str, str], Automation | None]:
    """Returns the automations by their keys in a unit's notes.

    Call it when the unit has locked the contacts: a cancellation waits for runs whose contacts are locked.
    """
    columns = (Automation.id, Automation.workspace_id, Automation.name, Automation.status, Automation.cancellations)
    found = Automation.select(*columns).where(Automation.id.in_(list(wanted)))
    return dict.fromkeys(map(_automation, wanted)) | {_automation(automation.id): automation for automation in found}


def _automation(automation_id: str) -> tuple[str, str]:
    return ("automation of runs", automation_id)


def _carry_on(
    claimed: Claimed, unit: Unit, *, was_light: bool = False, is_hopeless: bool = False
) -> Interpreter | None:
    """Continues the run; returns None if it has changed since it was claimed.

    Raises Busy if another transaction has locked a row. Also raises Busy if the workspace has become heavy since the
    batch began, because the thread is for workspaces that are not heavy.
    """
    if was_light and TURNS.is_heavy(claimed.owner):
        raise Busy
    with TURNS.of(claimed.owner):
        return _carry_on_now(claimed, unit, is_hopeless=is_hopeless)


def _carry_on_now(claimed: Claimed, unit: Unit, *, is_hopeless: bool) -> Interpreter | None:
    unit.get(Contact, claimed.owner, "id", claimed.carried.contact_id)
    run = unit.get(Run, claimed.owner, "id", claimed.id)
    if run is None or run.claim != claimed.claim or run.due_at is None:
        return None
    if run_endings.adopted(unit, run) is not run:
        return None
    if _automation(run.automation_id) not in unit.notes:
        unit.notes |= _automations([run.automation_id])
    automation = unit.notes[_automation(run.automation_id)]
    if automation is None or controls.is_cancelled(automation, run):
        name = automation.name if automation else ""
        run_endings.finish(unit, run, "cancelled", automation_name=name, reason="request")
        return None
    interpreter = Interpreter(unit, run, automation.name)
    try:
        with unit.attempt():
            if is_hopeless:
                interpreter.fail("error", _BROKEN)
            elif run.deaths > MOST_DEATHS:
                interpreter.fail("error", f"{MOST_DEATHS} workers died while they carried out this run.")
            elif automation.status == "paused":
                interpreter.hold()
            else:
                interpreter.go(programs.program_of(run.automation_id, run.version))
    except (Busy, DatabaseError, InterfaceError):
        raise
    except Exception:
        log.exception("run.broke", request_id=run.trace_id, run=run.id)
        interpreter = Interpreter(unit, run, automation.name)
        interpreter.fail("error", _BROKEN)
    return interpreter


def _measure(interpreter: Interpreter) -> None:
    for kind, status in interpreter.taken:
        metrics.RUN_STEPS.labels(kind, status).inc()
    if interpreter.ended_as is not None:
        metrics.RUNS_FINISHED.labels(interpreter.ended_as).inc()
        log.info(
            "run.finished", request_id=interpreter.run.trace_id, run=interpreter.run.id, status=interpreter.ended_as
        )


def _trace(spans: Spans, carried_on: Sequence[Interpreter], began: float) -> None:
    """Adds a span for each run that one transaction has continued since `began`.

    The identifier of a run's first span depends only on the run, so that events, messages and further runs can refer to
    it.
    """
    now = time.time()
    for interpreter in carried_on:
        run, first = interpreter.run, tracing.span_of(interpreter.run.id)
        cause_id = run.event_id or run.parent_id or run.job_id
        failure = run.failure if interpreter.ended_as == "failed" else None
        spans.add(
            "run",
            "CONSUMER",
            tracing.trace_of(run.root_id),
            first if interpreter.has_begun else tracing.span_of(run.id, str(run.claim)),
            first if not interpreter.has_begun else tracing.span_of(cause_id) if cause_id else None,
            (began, now),
            {
                "messaging.system": "bellhop",
                "messaging.operation.type": "process",
                "messaging.destination.name": MAIL.queue,
                "messaging.message.id": run.id,
                "messaging.batch.message_count": len(carried_on),
                "bellhop.workspace.id": run.workspace_id,
                "bellhop.automation.id": run.automation_id,
                "bellhop.run.steps": [f"{kind} {status}" for kind, status in interpreter.taken],
                "bellhop.run.ended_as": interpreter.ended_as,
            },
            failure["code"] if failure else None,
        )
