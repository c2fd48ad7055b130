"""Due starts: begins the runs of timed triggers that are due, each exactly once.

The run begins, and its row in `waiting_starts` is updated, in one transaction, under the lock of the booking or
contact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import structlog

from app import sql
from app.database import rows, transaction
from app.domain.contacts import bookings, contacts
from app.domain.triggers import automation_listeners, batches, run_endings, run_states, timed_triggers, waiting_starts
from app.domain.triggers.automation_listeners import Listener
from app.domain.triggers.conditions import holds
from app.domain.triggers.timed_triggers import Trigger
from app.domain.work import equal_parts, events
from app.domain.work.units import Busy, Unit
from app.lib import json
from app.lib.request_ids import kept_or_new
from app.models import sets
from app.models.automations import Enrolment
from app.models.bookings import Booking
from app.models.contacts import Contact
from app.models.sets import Key
from app.models.waiting_starts import WaitingStart

log = structlog.get_logger(__name__)

# The `kind` of the event that the run gets: for a booking, and for a date of a contact.
UPCOMING, DATE = "booking.upcoming", "contact.date"
IS_ANY_DUE = "EXISTS (SELECT FROM waiting_starts WHERE at <= now())"


class _Due(NamedTuple):
    """A row of `waiting_starts` that is due."""

    id: str
    workspace_id: str
    automation_id: str
    key: str
    about_id: str

    @property
    def needs(self) -> Iterator[Key]:
        return waiting_starts.needs_of(self.workspace_id, self.automation_id, self.key, self.about_id)

    @property
    def about(self) -> Key:
        """The key of the booking or contact."""
        return waiting_starts.about_key(self.workspace_id, self.key, self.about_id)


def start_some() -> int:
    """Begins due runs until none are left or the slice is over; returns how many rows were handled.

    Run it twice a second. Each workspace gets an equal share of a slice, so that one with many starts delays no other.
    Safe to run concurrently: each run begins once.
    """
    owners = (owner for (owner,) in rows(sql.prepared("find_due_owners", _OWNERS)))
    return equal_parts.serve(owners, _start_due)


def enter(
    unit: Unit, listener: Listener, contact: Contact, triggers: Sequence[Trigger], kind: str, **further: Any
) -> None:
    """Begins a run if the condition of a trigger holds and the contact may enter. Raises Busy.

    The run gets an event of `kind`, made here, with the contact's current state and `further` as its `data`.
    """
    data = {"contact": contacts.represent(contact), **further}
    event = dict(json.loads(events.body(None, kind, unit.now, contact.workspace_id, data)))
    named = {"contact": event["data"]["contact"], "conversation": None, "steps": {}}
    named["trigger"] = {"event": event, "variables": {}}
    if any("if" not in trigger or holds(trigger["if"], named) for trigger in triggers):
        start = listener.start(contact.workspace_id, contact.id, kept_or_new(None), event=event, depth=1)
        run_states.enter(unit, start, listener.reentry or "after_finish")


def _start_due(workspace_ids: Sequence[str], each: int) -> Counter[str]:
    """Handles up to `each` due rows of each workspace; returns how many rows of each were handled."""
    found = rows(sql.prepared("find_due_starts", _DUE), {"owners": sql.array(workspace_ids), "each": each})
    batch = [_Due(*row) for row in found]
    if not batch:
        return Counter()
    with transaction():
        tasks = [partial(_start, due) for due in batch]
        needs = [key for due in batch for key in due.needs]
        results = batches.run(tasks, needs, then=partial(_read_further, batch), in_order=False)
        # Rows that failed because of a fault of ours are dropped: trying again would meet the same fault.
        broken = [due.id for due, result in zip(batch, results, strict=True) if _is_broken(due, result)]
        if broken:
            sets.delete(WaitingStart, broken)
    done = (due for due, result in zip(batch, results, strict=True) if not isinstance(result, Busy))
    return Counter(due.workspace_id for due in done)


def _is_broken(due: _Due, result: object) -> bool:
    is_so = isinstance(result, Exception) and not isinstance(result, Busy)
    if is_so:
        log.error("start.failed", start=due.id, exc_info=result)
    return is_so


def _read_further(batch: Sequence[_Due], unit: Unit) -> None:
    """Reads the enrolments of the contacts that the unit has locked, and the automations."""
    keys = []
    for due in batch:
        about = waiting_starts.find_about(unit, due.about) if unit.is_free(due.about) else None
        if about is None:
            continue
        contact_id = about.contact_id if isinstance(about, Booking) else about.id
        if unit.is_free(sets.key(Contact, due.workspace_id, "id", contact_id)):
            keys.append(sets.key(Enrolment, due.workspace_id, "id", Enrolment.id_of(contact_id, due.automation_id)))
    unit.read(keys)
    found = automation_listeners.starting({due.automation_id for due in batch})
    unit.notes |= {_note(due.automation_id): found.get(due.automation_id) for due in batch}


def _start(due: _Due, unit: Unit) -> None:
    """Begins the run and plans the next one. Does nothing if the row is no longer due.

    Drops the row if the trigger or the contact is gone, or the booking is gone, cancelled or has begun. If the time has
    changed, only plans anew. Raises Busy.
    """
    about = waiting_starts.find_about(unit, due.about)
    contact = _contact(unit, about) if about else None
    waiting = unit.get(WaitingStart, due.workspace_id, "id", due.id)
    if waiting is None or waiting.at is None or waiting.at > unit.now:
        return
    listener = unit.noted(
        _note(due.automation_id), lambda: automation_listeners.starting([due.automation_id]).get(due.automation_id)
    )
    triggers = timed_triggers.with_key(listener.triggers, due.key) if listener else []
    is_over = isinstance(about, Booking) and not waiting_starts.is_ahead(unit, about)
    if not (listener and triggers and about and contact) or is_over:
        unit.drop(waiting)
        return
    if (day := waiting_starts.due_day(unit, waiting, about)) is not None:
        unit.put(waiting.altered(fired_for=day))
        booking = {"booking": bookings.represent(about)} if isinstance(about, Booking) else {}
        enter(unit, listener, contact, triggers, UPCOMING if booking else DATE, **booking)
    waiting_starts.plan(unit, due.automation_id, due.key, about)


def _contact(unit: Unit, about: Booking | Contact) -> Contact | None:
    """Returns the contact, or None if deleted. Follows merges of a booking's contact. Raises Busy."""
    if isinstance(about, Contact):
        return about
    contact_id: str | None = about.contact_id
    while contact_id is not None:
        if (contact := unit.get(Contact, about.workspace_id, "id", contact_id)) is not None:
            return contact
        contact_id = run_endings.kept(unit, contact_id)
    return None


def _note(automation_id: str) -> tuple[str, str]:
    return ("starting automation", automation_id)


# The workspaces with a due row: a skip scan goes from one workspace with waiting rows to the next.
_OWNERS = """
    WITH RECURSIVE owner(id, earliest) AS (
        (SELECT workspace_id, at FROM waiting_starts WHERE at IS NOT NULL ORDER BY workspace_id, at LIMIT 1)
        UNION ALL
        SELECT next.workspace_id, next.at FROM owner CROSS JOIN LATERAL (
            SELECT workspace_id, at FROM waiting_starts WHERE at IS NOT NULL AND workspace_id > owner.id
            ORDER BY workspace_id, at LIMIT 1) AS next
    )
    SELECT id FROM owner WHERE earliest <= now()
"""
_DUE = """
    SELECT due.* FROM unnest(%(owners)s::text[]) AS owner CROSS JOIN LATERAL (
        SELECT id, workspace_id, automation_id, key, coalesce(booking_id, contact_id) FROM waiting_starts
        WHERE workspace_id = owner AND at <= now() ORDER BY at LIMIT %(each)s) AS due
"""
