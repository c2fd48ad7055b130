"""Waiting starts: made, moved and dropped as bookings change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.domain.triggers import timed_triggers
from app.domain.triggers.automation_listeners import Heard, Listener
from app.domain.work.units import Unit
from app.models import sets
from app.models.bookings import Booking
from app.models.sets import Key
from app.models.waiting_starts import WaitingStart


def needs(heard: Heard, listener: Listener) -> Iterator[Key]:
    """The keys that `follow` gets from its unit."""
    for trigger in timed_triggers.timed(listener.triggers):
        yield from needs_of(heard.workspace_id, listener.id, timed_triggers.key_of(trigger), _booking_id(heard))


def needs_of(workspace_id: str, automation_id: str, key: str, booking_id: str) -> Iterator[Key]:
    """The keys that `plan` gets from its unit, with that of the booking."""
    yield sets.key(Booking, workspace_id, "id", booking_id)
    yield sets.key(WaitingStart, workspace_id, "id", WaitingStart.id_of(automation_id, booking_id, key))


def follow(unit: Unit, heard: Heard, listener: Listener) -> None:
    """Plans the starts for the booking that the event is about, as that is now. Raises Busy."""
    booking = unit.get(Booking, heard.workspace_id, "id", _booking_id(heard))
    if booking is not None:
        for key in {timed_triggers.key_of(trigger) for trigger in timed_triggers.timed(listener.triggers)}:
            plan(unit, listener.id, key, booking)


def plan(unit: Unit, automation_id: str, key: str, booking: Booking, published_at: datetime | None = None) -> None:
    """Makes, moves or drops the start, which the unit writes; it has locked the booking. Safe to repeat. Raises Busy.

    Where nothing has started for the booking yet, a time that has passed means at once; unless nothing waits and it had
    passed when the trigger was published, if that is given.
    """
    row_id = WaitingStart.id_of(automation_id, booking.id, key)
    waiting = unit.get(WaitingStart, booking.workspace_id, "id", row_id)
    if not is_ahead(unit, booking):
        # One that has fired stays until its time, so that the booking cannot make it fire again.
        if waiting is not None and not waiting.has_fired:
            unit.drop(waiting)
        return
    at = timed_triggers.time_for(timed_triggers.trigger_of(key), booking)
    has_fired = waiting.has_fired if waiting else published_at is not None and at <= published_at
    due_at = booking.starts_at if has_fired and at <= unit.now else at
    if waiting is None:
        about = {"automation_id": automation_id, "key": key, "booking_id": booking.id}
        unit.put(WaitingStart(id=row_id, workspace_id=booking.workspace_id, at=due_at, has_fired=has_fired, **about))
    elif waiting.at != due_at:
        unit.put(waiting.altered(at=due_at))


def is_ahead(unit: Unit, booking: Booking) -> bool:
    """Whether the booking is still to come."""
    return bool(booking.status == "booked" and booking.starts_at > unit.now)


def _booking_id(heard: Heard) -> str:
    # An erasure leaves nothing of the booking in the event.
    return str(heard.document["data"].get("booking", {}).get("id"))
