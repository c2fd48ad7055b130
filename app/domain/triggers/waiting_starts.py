"""Waiting starts: keeps the runs to start before a booking, or on a contact's date, up to date."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from app.database import rows
from app.domain.triggers import dates, timed_triggers
from app.domain.triggers.automation_listeners import Listener, ObservedEvent
from app.domain.triggers.dates import Coming
from app.domain.triggers.timed_triggers import BEFORE, DATE, Trigger
from app.domain.work.units import Unit
from app.lib import time_zones
from app.models import sets
from app.models.bookings import Booking
from app.models.contacts import Contact
from app.models.sets import Key
from app.models.waiting_starts import WaitingStart

_MODELS: dict[str, type[Booking] | type[Contact]] = {BEFORE: Booking, DATE: Contact}
_COLUMNS = {BEFORE: "booking_id", DATE: "contact_id"}


def needs(observed: ObservedEvent, listener: Listener) -> Iterator[Key]:
    """Yields the keys that `follow` gets from its unit."""
    for trigger in timed_triggers.concerned(listener.triggers, observed.event.kind):
        key = timed_triggers.key_of(trigger)
        yield from needs_of(observed.workspace_id, listener.id, key, _about_id(observed, trigger))


def needs_of(workspace_id: str, automation_id: str, key: str, about_id: str) -> Iterator[Key]:
    """Yields the keys that `plan` gets from its unit, and the key of the booking or contact."""
    yield about_key(workspace_id, key, about_id)
    yield sets.key(WaitingStart, workspace_id, "id", WaitingStart.id_of(automation_id, about_id, key))


def about_key(workspace_id: str, key: str, about_id: str) -> Key:
    """Returns the key of the booking or contact that a start of the trigger `key` is about."""
    return sets.key(_MODELS[timed_triggers.listens_to(timed_triggers.trigger_of(key))], workspace_id, "id", about_id)


def find_about(unit: Unit, key: Key) -> Booking | Contact | None:
    """Returns the booking or contact with that key; None if it has been deleted. Raises Busy."""
    about: Any = unit.get(*key)
    return about  # type: ignore[no-any-return]


def follow(unit: Unit, observed: ObservedEvent, listener: Listener) -> None:
    """Plans the starts for the booking or contact of the event, from its current state. Raises Busy."""
    for trigger in timed_triggers.concerned(listener.triggers, observed.event.kind):
        key = timed_triggers.key_of(trigger)
        about = find_about(unit, about_key(observed.workspace_id, key, _about_id(observed, trigger)))
        if about is not None:
            plan(unit, listener.id, key, about)


def plan(
    unit: Unit, automation_id: str, key: str, about: Booking | Contact, published_at: datetime | None = None
) -> None:
    """Creates, moves or drops the waiting start of `about`, which the unit has locked.

    Safe to repeat. If the trigger's time before a booking has passed, the run is due at once, unless one was started
    already. If the time had passed at `published_at` and no start was waiting, no run is started. A contact's date that
    has passed is skipped. Raises Busy.
    """
    row_id = WaitingStart.id_of(automation_id, about.id, key)
    waiting, trigger = unit.get(WaitingStart, about.workspace_id, "id", row_id), timed_triggers.trigger_of(key)
    known = waiting or WaitingStart(
        id=row_id,
        workspace_id=about.workspace_id,
        automation_id=automation_id,
        key=key,
        **{_COLUMNS[timed_triggers.listens_to(trigger)]: about.id},
    )
    planned = (
        _for_booking(unit, trigger, about, known, published_at if waiting is None else None)
        if isinstance(about, Booking)
        else _for_contact(unit, trigger, about, known)
    )
    if planned.at is None and planned.fired_for is None and not planned.is_unreadable:
        if waiting is not None:
            unit.drop(waiting)
    elif waiting is None or _state(waiting) != _state(planned):
        unit.put(planned)


def due_day(unit: Unit, waiting: WaitingStart, about: Booking | Contact) -> date | None:
    """Returns the day for which a due row starts a run; None if the time has changed since."""
    trigger = timed_triggers.trigger_of(waiting.key)
    if isinstance(about, Booking):
        is_its = is_ahead(unit, about) and waiting.at == _before(trigger, about)
        return about.starts_at.date() if is_its else None
    coming = _coming(unit, trigger, about, waiting)
    return coming.day if coming and coming.at == waiting.at else None


def is_ahead(unit: Unit, booking: Booking) -> bool:
    """Returns whether the booking is still to come: neither cancelled nor begun."""
    return bool(booking.status == "booked" and booking.starts_at > unit.now)


def _for_booking(
    unit: Unit, trigger: Trigger, booking: Booking, known: WaitingStart, published_at: datetime | None
) -> WaitingStart:
    """Returns the row with its next time, or as it is if it has fired and the booking is not ahead.

    A row that has fired and whose time has passed is kept until the booking begins, so that it does not fire twice for
    one time. If the booking moves to a later time, the row fires again.
    """
    if not is_ahead(unit, booking):
        return known if known.fired_for else known.altered(at=None)
    at, fired_for = _before(trigger, booking), known.fired_for
    if published_at is not None and at <= published_at:
        fired_for = booking.starts_at.date()
    return known.altered(at=booking.starts_at if fired_for and at <= unit.now else at, fired_for=fired_for)


def _state(waiting: WaitingStart) -> tuple[datetime | None, date | None, bool]:
    return waiting.at, waiting.fired_for, waiting.is_unreadable


def _for_contact(unit: Unit, trigger: Trigger, contact: Contact, known: WaitingStart) -> WaitingStart:
    """Returns the row with the next time of the contact's date, or without a time.

    `plan` keeps a row without a time if it has fired, so that a changed date does not fire twice in a year. It also
    keeps a row whose value is not a date: `dates` reports it.
    """
    coming = _coming(unit, trigger, contact, known)
    value = contact.custom_fields.get(dates.field_of(trigger))
    is_unreadable = coming is None and value not in (None, "") and not dates.is_readable(value)
    return known.altered(at=coming.at if coming else None, is_unreadable=is_unreadable)


def _coming(unit: Unit, trigger: Trigger, contact: Contact, known: WaitingStart) -> Coming | None:
    value = contact.custom_fields.get(dates.field_of(trigger))
    if value is None:
        return None
    # A date that is already due is still returned, however late the row is handled.
    after = min(unit.now, known.at - timedelta.resolution) if known.at else unit.now
    return dates.next_after(trigger, value, _zone(unit, contact), after, known.fired_for)


def _zone(unit: Unit, contact: Contact) -> ZoneInfo:
    find = "SELECT timezone FROM workspaces WHERE id = %s"
    [(timezone,)] = unit.noted(("time zone", contact.workspace_id), lambda: rows(find, (contact.workspace_id,)))
    return time_zones.first_known(contact.timezone, timezone)


def _before(trigger: Trigger, booking: Booking) -> datetime:
    at: datetime = booking.starts_at - timedelta(seconds=trigger["seconds"])
    return at


def _about_id(observed: ObservedEvent, trigger: Trigger) -> str:
    if timed_triggers.listens_to(trigger) == DATE:
        return str(observed.event.contact_id)
    # After an erasure the event has no booking.
    return str(observed.document["data"].get("booking", {}).get("id"))
