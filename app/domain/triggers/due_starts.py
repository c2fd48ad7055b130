"""Due starts: begin the runs whose time has come, many in one transaction, each exactly once.

A start is mail of its workspace from its time on. Beginning the run and dropping the start are one transaction, so a
worker that dies leaves either both or none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import structlog

from app import mailbox
from app.database import transaction
from app.domain.contacts import bookings, contacts
from app.domain.triggers import automation_listeners, batches, run_endings, run_states, timed_triggers, waiting_starts
from app.domain.triggers.automation_listeners import Listener
from app.domain.triggers.conditions import holds
from app.domain.triggers.run_states import Start
from app.domain.work import events
from app.domain.work.units import Busy, Unit
from app.lib import json
from app.lib.request_ids import kept_or_new
from app.mailbox import Claimed, Mail, Waiting
from app.models import sets
from app.models.automations import Enrolment
from app.models.bookings import Booking
from app.models.contacts import Contact
from app.models.sets import Key
from app.models.waiting_starts import WaitingStart

log = structlog.get_logger(__name__)


class Carried(NamedTuple):
    """What a claimed start brings along."""

    automation_id: str
    booking_id: str


MAIL = Mail(table="waiting_starts", owner="workspace_id", queue="starts", carries=Carried)
WAITING = Waiting(MAIL, "starts_at")

# The `kind` of what a run has as its event.
UPCOMING = "booking.upcoming"
# Starts that one transaction is about.
BATCH = 100
# The pause before retrying starts whose contacts another transaction holds.
BUSY_SECONDS = 0.005


def work(*workspace_ids: str) -> None:
    """Begins the due runs of these workspaces, together, until none is left or the slice is over."""
    mailbox.serve_shared(MAIL, workspace_ids, BATCH, _work_on)


def _work_on(batch: Sequence[Claimed]) -> None:
    with transaction():
        tasks = [partial(_start, claimed) for claimed in batch]
        needs = [_booking(claimed) for claimed in batch]
        results = batches.run(tasks, needs, then=partial(_read, batch), in_order=False)
        broken = [claimed for claimed, result in zip(batch, results, strict=True) if _is_broken(claimed, result)]
        mailbox.drop(MAIL, broken)
    busy = [claimed for claimed, result in zip(batch, results, strict=True) if isinstance(result, Busy)]
    if busy:
        mailbox.release(MAIL, busy)
        time.sleep(BUSY_SECONDS)
        for workspace_id in {claimed.owner for claimed in busy}:
            mailbox.ring(MAIL, workspace_id)


def _is_broken(claimed: Claimed, result: object) -> bool:
    """Whether a fault of Bellhop's kept it from starting; trying it again would meet the same fault."""
    is_so = isinstance(result, Exception) and not isinstance(result, Busy)
    if is_so:
        log.error("start.failed", start=claimed.id, exc_info=result)
    return is_so


def _read(batch: Sequence[Claimed], unit: Unit) -> None:
    """Reads the starts whose contacts are locked, with the contacts' enrolments; and the automations."""
    keys: list[Key] = []
    for claimed in batch:
        booking = unit.get(Booking, *_booking(claimed)[1:]) if unit.is_free(_booking(claimed)) else None
        if booking and unit.is_free(sets.key(Contact, claimed.owner, "id", booking.contact_id)):
            enrolment_id = Enrolment.id_of(booking.contact_id, claimed.carried.automation_id)
            keys.append(sets.key(WaitingStart, claimed.owner, "id", claimed.id))
            keys.append(sets.key(Enrolment, claimed.owner, "id", enrolment_id))
    unit.read(keys)
    wanted = {claimed.carried.automation_id for claimed in batch}
    found = automation_listeners.starting(wanted)
    unit.notes |= {_note(automation_id): found.get(automation_id) for automation_id in wanted}


def _start(claimed: Claimed, unit: Unit) -> None:
    """Begins the run, unless what it is about has changed; the start is gone then, or waits. Raises Busy."""
    booking = unit.get(Booking, *_booking(claimed)[1:])
    contact = _contact(unit, booking) if booking else None
    waiting = unit.get(WaitingStart, claimed.owner, "id", claimed.id)
    if waiting is None or waiting.claim != claimed.claim or waiting.due_at is None:
        return
    listener = unit.noted(_note(waiting.automation_id), partial(_find_listener, waiting.automation_id))
    triggers = _triggers(listener, waiting.key)
    at = timed_triggers.time_for(triggers[0], booking) if triggers and booking else None
    if listener is None or booking is None or contact is None or at is None or booking.starts_at <= unit.now:
        unit.drop(waiting)
    elif at > unit.now:
        waiting_starts.move(unit, waiting, at)
    else:
        unit.drop(waiting)
        _enter(unit, listener, contact, _document(unit, contact, booking), triggers)


def _triggers(listener: Listener | None, key: str) -> list[timed_triggers.Trigger]:
    """The triggers with that key which its automation still has; they differ only in their conditions."""
    listed = timed_triggers.timed(listener.triggers) if listener else ()
    return [trigger for trigger in listed if timed_triggers.key_of(trigger) == key]


def _enter(
    unit: Unit, listener: Listener, contact: Contact, event: dict[str, Any], triggers: Sequence[timed_triggers.Trigger]
) -> None:
    named = {"contact": event["data"]["contact"], "conversation": None, "steps": {}}
    named["trigger"] = {"event": event, "variables": {}}
    if any("if" not in trigger or holds(trigger["if"], named) for trigger in triggers):
        start = Start(
            contact.workspace_id,
            listener.id,
            listener.version,
            contact.id,
            kept_or_new(None),
            event=event,
            goal=listener.goal,
            depth=1,
        )
        run_states.enter(unit, start, listener.reentry or "after_finish")


def _document(unit: Unit, contact: Contact, booking: Booking) -> dict[str, Any]:
    """What the run has as its event, in the form of one: the contact and the booking as they are now."""
    data = {"contact": contacts.represent(contact), "booking": bookings.represent(booking)}
    return dict(json.loads(events.body(None, UPCOMING, unit.now, contact.workspace_id, data)))


def _contact(unit: Unit, booking: Booking) -> Contact | None:
    """The booking's contact, or the one that it has become a part of; None if it has been deleted. Raises Busy."""
    contact_id: str | None = booking.contact_id
    while contact_id is not None:
        if (contact := unit.get(Contact, booking.workspace_id, "id", contact_id)) is not None:
            return contact
        contact_id = run_endings.kept(unit, contact_id)
    return None


def _find_listener(automation_id: str) -> Listener | None:
    return automation_listeners.starting([automation_id]).get(automation_id)


def _booking(claimed: Claimed) -> Key:
    return sets.key(Booking, claimed.owner, "id", claimed.carried.booking_id)


def _note(automation_id: str) -> tuple[str, str]:
    return ("starting automation", automation_id)
