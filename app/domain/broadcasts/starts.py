"""Starts: begins a broadcast's automation for its contacts."""

from __future__ import annotations

from collections.abc import Sequence

from app.database import rows
from app.domain.broadcasts.contact_actions import Reached, Skipped, contact_of
from app.domain.triggers import automation_listeners, run_states
from app.domain.triggers.run_states import Start
from app.domain.work.units import Unit
from app.models import sets
from app.models.automations import Enrolment
from app.models.broadcasts import Broadcast
from app.models.contacts import Contact
from app.models.sets import Key

# A workspace with this many runs due begins no more for its broadcasts.
MOST_DUE = 500
_UNPUBLISHED = "The automation is not published. Publish it, then continue."


class StartAutomation:
    """Starts a broadcast's automation for each contact."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast
        self._automation_id = str(broadcast.automation_id)
        self._listener = automation_listeners.starting([self._automation_id]).get(self._automation_id)

    def problem(self) -> str | None:
        """Returns a sentence if the automation is not published; None if it is."""
        return None if self._listener else _UNPUBLISHED

    def room(self) -> int:
        """Returns how many more runs may be due in the workspace."""
        [(due,)] = rows(_DUE, (self._broadcast.workspace_id, MOST_DUE))
        return MOST_DUE - int(due)

    def needs(self, contact_ids: Sequence[str]) -> list[Key]:
        """Returns the keys of the contacts and of their enrolments in the automation."""
        workspace_id = self._broadcast.workspace_id
        return [
            sets.key(model, workspace_id, "id", row_id)
            for each in contact_ids
            for model, row_id in ((Contact, each), (Enrolment, Enrolment.id_of(each, self._automation_id)))
        ]

    def prefetch(self, contact_ids: Sequence[str], unit: Unit) -> None:
        """Reads nothing: the rows of `needs` are enough."""

    def reach(self, contact_id: str, unit: Unit) -> Reached:
        """Begins a run of the automation for the contact. Raises Skipped, Busy."""
        contact, listener = contact_of(self._broadcast, contact_id, unit), self._listener
        assert listener is not None
        start = Start(
            contact.workspace_id,
            listener.id,
            listener.version,
            contact.id,
            self._broadcast.trace_id,
            goal=listener.goal,
        )
        if run_states.keeps_out(unit, start, listener.reentry or "every") is not None:
            run_states.count_refused(unit, start, "reentry")
            raise Skipped("reentry")
        return Reached(run_id=run_states.begin(unit, start).id)


_DUE = """
    SELECT count(*) FROM (SELECT FROM runs WHERE workspace_id = %s AND due_at IS NOT NULL LIMIT %s) AS due
"""
