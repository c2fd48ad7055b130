"""Bulk changes: change many runs of an automation in small transactions, each run once.

Never waits for locks. A bulk change takes the runs in ascending order of their identifiers. The caller keeps the last
identifier between parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.database import rows
from app.domain.work.changes import Change
from app.domain.work.units import Busy, Unit
from app.models import sets
from app.models.automations import Enrolment
from app.models.contacts import Contact
from app.models.runs import UNFINISHED, Run
from app.models.sets import Key

# The most runs that one transaction changes, and locks.
PART = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """Selects unfinished runs of an automation by status, identifier and, if given, contact and step.

    `first_id` is inclusive, `last_id` exclusive. `waiting_in`: (version, step), for runs that wait in that step.
    """

    workspace_id: str
    automation_id: str
    statuses: Sequence[str] = UNFINISHED
    contact_id: str | None = None
    first_id: str = ""
    last_id: str = "run_~"
    waiting_in: tuple[int, str] | None = None

    @property
    def statement(self) -> str:
        """The query for the next chosen runs."""
        return _WAITING if self.waiting_in else _CHOSEN[self.contact_id is not None]

    def has(self, run: Run) -> bool:
        """Whether the run, in its current state, is chosen."""
        return (
            run.automation_id == self.automation_id
            and run.status in self.statuses
            and self.contact_id in (None, run.contact_id)
            and self.first_id <= run.id < self.last_id
            and (self.waiting_in is None or (self.waiting_in == (run.version, run.step) and run.waits_for is not None))
        )


def go_on(change: Change, choice: Choice, after: str, alter: Callable[[Unit, Run], object]) -> str | None:
    """Alters the next chosen runs after the identifier `after`.

    Returns the identifier to continue after; None at the end. Locks each run's contact before the run. The next part
    starts with the first run that another transaction has held up. Raises Busy if no run could be altered.
    """
    unit, found = change.unit, rows(choice.statement, _values(choice, after, PART))
    if not found:
        return None
    unit.read(sets.key(Contact, choice.workspace_id, "id", contact_id) for _, contact_id in found)
    unit.read(key for run_id, contact_id in found for key in _behind_contact(unit, choice, run_id, contact_id))
    held_up = [run_id for run_id, contact_id in found if not _has_altered(unit, choice, run_id, contact_id, alter)]
    if len(held_up) == len(found):
        raise Busy
    passed = [run_id for run_id, _ in found if not held_up or run_id < held_up[0]]
    if held_up:
        return passed[-1] if passed else after
    return passed[-1] if len(found) == PART else None


def count(choice: Choice, most: int) -> int:
    """Counts the runs chosen now, up to `most`."""
    return int(rows(f"SELECT count(*) FROM ({choice.statement}) AS chosen", _values(choice, "", most))[0][0])


def _behind_contact(unit: Unit, choice: Choice, run_id: str, contact_id: str) -> Iterator[Key]:
    """Yields the keys of run and enrolment, unless another transaction has locked the contact."""
    if unit.is_free(sets.key(Contact, choice.workspace_id, "id", contact_id)):
        yield sets.key(Run, choice.workspace_id, "id", run_id)
        yield sets.key(Enrolment, choice.workspace_id, "id", Enrolment.id_of(contact_id, choice.automation_id))


def _has_altered(
    unit: Unit, choice: Choice, run_id: str, contact_id: str, alter: Callable[[Unit, Run], object]
) -> bool:
    """Alters the run if it is still chosen. Returns False if another transaction blocks the change."""
    try:
        with unit.attempt():
            unit.get(Contact, choice.workspace_id, "id", contact_id)
            run = unit.get(Run, choice.workspace_id, "id", run_id)
            if run is not None and choice.has(run):
                alter(unit, run)
    except Busy:
        return False
    return True


def _values(choice: Choice, after: str, limit: int) -> dict[str, Any]:
    version, step = choice.waiting_in or (None, None)
    bounds = {"first_id": max(choice.first_id, after), "after": after, "limit": limit}
    return asdict(choice) | bounds | {"statuses": list(choice.statuses), "version": version, "step": step}


# The next runs, with or without a contact. Whole index tuples are compared, so that the planner walks the index in
# order.
_CHOSEN = {
    False: """
        SELECT next.id, next.contact_id FROM unnest(%(statuses)s::text[]) AS state(status) CROSS JOIN LATERAL (
            SELECT id, contact_id FROM runs
            WHERE workspace_id = %(workspace_id)s AND id > %(after)s
                AND (automation_id, status, id) >= (%(automation_id)s, state.status, %(first_id)s)
                AND (automation_id, status, id) < (%(automation_id)s, state.status, %(last_id)s)
            ORDER BY automation_id, status, id LIMIT %(limit)s) AS next
        ORDER BY next.id LIMIT %(limit)s
    """,
    True: """
        SELECT id, contact_id FROM runs
        WHERE workspace_id = %(workspace_id)s AND id > %(after)s AND status = ANY(%(statuses)s)
            AND automation_id = %(automation_id)s
            AND (contact_id, id) >= (%(contact_id)s, %(first_id)s) AND (contact_id, id) < (%(contact_id)s, %(last_id)s)
        ORDER BY contact_id, id LIMIT %(limit)s
    """,
}

# The next runs that wait in a step, in the order of the index that contains only waiting runs.
_WAITING = """
    SELECT id, contact_id FROM runs
    WHERE workspace_id = %(workspace_id)s AND automation_id = %(automation_id)s AND version = %(version)s
        AND step = %(step)s AND waits_for IS NOT NULL AND id > %(after)s
    ORDER BY id LIMIT %(limit)s
"""
