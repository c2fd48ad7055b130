"""Steps without the engine: what a step returns at a moment of a run, and what it has written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import Done, Outcome, Step, Wait
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.models.contacts import Contact
from app.models.runs import Run
from tests.talks import change, locked


@dataclass
class Moment:
    """`{name}` in a template is one of the variables."""

    run: Run
    step: Step
    unit: Unit
    contact: Contact
    is_simulated: bool = False
    answer: Mapping[str, Any] | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return self.unit.now

    def render(self, template: str) -> str:
        return template.format(**self.variables)

    def change(self, payload: Mapping[str, Any], resource_id: str | None = None) -> Change:
        return change(self.unit, self.run.workspace_id)


def begin(run_id: str, kind: str, fields: Mapping[str, Any] | None = None, **options: Any) -> Outcome:
    """Begins the step in a unit of its own, and sets the run's fields as the engine does."""
    run, step = Run.get_by_id(run_id), Step("step", kind, fields or {}, None)

    def task(unit: Unit, contact: Contact) -> Outcome:
        own = unit.get(Run, run.workspace_id, "id", run_id)
        outcome = STEP_KINDS[kind].begin(Moment(own, step, unit, contact, **options))
        if isinstance(outcome, Done | Wait):
            unit.put(Run(**{**own.__data__, **outcome.run_fields}))
        return outcome

    return locked(run.workspace_id, run.contact_id, task)


def resume(kind: str, fields: Mapping[str, Any], answer: Mapping[str, Any] | None) -> Outcome:
    """Resumes a step that looks at nothing but its answer."""
    moment: Any = Moment(Run(), Step("step", kind, fields, None), Unit(), Contact(), answer=answer)
    return STEP_KINDS[kind].resume(moment)
