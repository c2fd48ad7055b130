"""Waiting starts: made, moved and dropped as bookings change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from app.domain.triggers import timed_triggers
from app.domain.triggers.automation_listeners import Heard, Listener
from app.domain.triggers.timed_triggers import Trigger
from app.domain.work.units import Unit
from app.models import sets
from app.models.bookings import Booking
from app.models.sets import Key
from app.models.waiting_starts import WaitingStart


def needs(heard: Heard, listener: Listener) -> Iterator[Key]:
    """The keys that `follow` gets from its unit."""
    booking_id = _booking_id(heard)
    yield sets.key(Booking, heard.workspace_id, "id", booking_id)
    for trigger in listener.timed(heard):
        row_id = WaitingStart.id_of(listener.id, booking_id, timed_triggers.key_of(trigger))
        yield sets.key(WaitingStart, heard.workspace_id, "id", row_id)


def follow(unit: Unit, heard: Heard, listener: Listener) -> None:
    """Plans the starts for what the event is about, as that is now. Raises Busy.

    A new booking for which the time has passed gets its start at once. One that changes keeps or moves the start that
    waits, or gets another if the new time is still ahead.
    """
    booking = unit.get(Booking, heard.workspace_id, "id", _booking_id(heard))
    if booking is not None:
        after = None if heard.event.kind == "booking.created" else unit.now
        for trigger in listener.timed(heard):
            plan(unit, listener.id, trigger, booking, after)


def plan(unit: Unit, automation_id: str, trigger: Trigger, booking: Booking, after: datetime | None) -> None:
    """Makes, moves or drops the start, which the unit writes; it has locked the booking. Raises Busy.

    Makes one only for a time later than `after`; None: for any, if the booking is still ahead.
    """
    key = timed_triggers.key_of(trigger)
    row_id = WaitingStart.id_of(automation_id, booking.id, key)
    waiting = unit.get(WaitingStart, booking.workspace_id, "id", row_id)
    at = timed_triggers.time_for(trigger, booking)
    if at is None or booking.starts_at <= unit.now:
        if waiting is not None:
            unit.drop(waiting)
    elif waiting is not None:
        if waiting.at != at:
            move(unit, waiting, at)
    elif after is None or at > after:
        about = {"automation_id": automation_id, "key": key, "booking_id": booking.id}
        unit.put(WaitingStart(id=row_id, workspace_id=booking.workspace_id, starts_at=at, **about))


def move(unit: Unit, waiting: WaitingStart, at: datetime) -> None:
    """Has it wait for that time. A worker that has claimed it expects another, so the claim ends."""
    unit.put(waiting.altered(starts_at=at, due_at=None, leased_until=None, claim=waiting.claim + 1))


def _booking_id(heard: Heard) -> str:
    return str(heard.document["data"]["booking"]["id"])
