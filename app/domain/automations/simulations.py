"""Simulations: what a run of a draft would do for a contact, without doing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from app import bounds
from app.domain.automations.definitions import programs
from app.domain.automations.interpreter import MOST_UNBROKEN, Interpreter
from app.domain.work.units import Unit
from app.lib import clock, ids
from app.models import sets
from app.models.automations import Automation
from app.models.base import OwnedModel
from app.models.contacts import Contact
from app.models.runs import Run, RunStep
from app.models.sets import Key

_OVERSPENT = "The templates take more than {:,} steps together: too many for one simulation."


class Rehearsal(Unit):
    """A unit that locks nothing and is never written: it has the rows given, and for the rest there is nothing."""

    def __init__(self, given: Iterable[OwnedModel]) -> None:
        super().__init__()
        for row in given:
            self._stored |= dict.fromkeys(sets.keys_of(row), row)

    @property
    def is_long(self) -> bool:
        """Whether its templates have taken as many steps as those of one simulation may."""
        return self.computed > bounds.COMPUTING_PER_SIMULATION.most

    @property
    def now(self) -> datetime:
        """This process's time."""
        return clock.now()

    def read(self, keys: Iterable[Key]) -> None:
        """Finds nothing besides what was given."""
        self._stored |= {key: self._stored.get(key) for key in keys}

    def log(self) -> list[RunStep]:
        """The entries of logs that would have been written."""
        return [row for row in self._appended if isinstance(row, RunStep)]


def simulate(
    automation: Automation, contact: Contact | None, variables: Mapping[str, Any], replies: Sequence[str]
) -> tuple[Run, list[RunStep]]:
    """Runs the automation's draft for the contact (None: one without data); returns the run as it ended, and its log.

    Waits are over at once. Each wait for a reply gets the next of `replies`; when there is none left, it times out.
    Raises Overloaded.
    """
    with bounds.alone(automation.workspace_id):
        return _simulate(automation, contact, variables, replies)


def _simulate(
    automation: Automation, contact: Contact | None, variables: Mapping[str, Any], replies: Sequence[str]
) -> tuple[Run, list[RunStep]]:
    contact = contact or _nobody(automation.workspace_id)
    run = Run(
        id=ids.new("run"),
        workspace_id=automation.workspace_id,
        automation_id=automation.id,
        version=automation.latest_version + 1,
        contact_id=contact.id,
        variables=variables,
        trace_id="",
        created_at=clock.now(),
    )
    unit, program, left = Rehearsal([contact, run]), programs.compile(automation.definition), list(replies)
    for _ in range(MOST_UNBROKEN):
        interpreter = Interpreter(unit, run, automation.name, is_simulated=True)
        if unit.is_long:
            bounds.COMPUTING_PER_SIMULATION.reached()
            interpreter.fail("limit", _OVERSPENT.format(bounds.COMPUTING_PER_SIMULATION.most))
        else:
            interpreter.go(program)
        done = unit.get(Run, run.workspace_id, "id", run.id)
        assert done is not None
        run = done
        if run.is_finished:
            break
        run = run.altered(answer=_answer(run, left), is_released=True)
    return run, unit.log()


def _answer(run: Run, replies: list[str]) -> Mapping[str, Any] | None:
    if run.waits_for == "reply" and replies:
        return {"text": replies.pop(0), "message_id": None, "at": None}
    return None


def _nobody(workspace_id: str) -> Contact:
    now = clock.now()
    made = {"tags": [], "custom_fields": {}, "created_at": now, "updated_at": now}
    return Contact(id=ids.new("con"), workspace_id=workspace_id, **made)
