"""Runs for tests of steps that need nothing but the contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.database import rows, transaction
from app.domain.triggers import batches, run_states
from app.domain.triggers.run_states import Start
from app.models import sets
from app.models.contacts import Contact
from app.models.runs import Run, RunStep
from tests.automations import carry_on, make_automation


def carried_out(workspace_id: str, contact_id: str, *steps: Mapping[str, Any], **variables: Any) -> Run:
    """A run of these steps, as far as it gets at once. Their identifiers are their numbers."""
    numbered = [{"id": str(number), **step} for number, step in enumerate(steps, 1)]
    automation_id = make_automation(workspace_id, {"steps": numbered})
    begins = Start(workspace_id, automation_id, 1, contact_id, "trace-1", variables=variables)
    with transaction():
        key = sets.key(Contact, workspace_id, "id", contact_id)
        [run] = batches.run([lambda unit: run_states.begin(unit, begins)], [key])
    assert isinstance(run, Run)
    carry_on(workspace_id)
    return read(run)


def woken(run: Run) -> Run:
    """The run after its time has come."""
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE id = %s", (run.id,))
    carry_on(run.workspace_id)
    return read(run)


def read(run: Run) -> Run:
    found: Run = Run.get_by_id(run.id)
    return found


def log_of(run: Run) -> list[tuple[str, str]]:
    """What became of each step, and the sentence about it."""
    logged = RunStep.select().where(RunStep.run_id == run.id).order_by(RunStep.number)
    return [(entry.status, entry.detail["text"]) for entry in logged]
