"""Bookings: appointments of contacts, created and cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import fields, validate

from app.domain.contacts import contacts
from app.domain.work.changes import Change, Effect
from app.errors import NotFound
from app.lib.schemas import ResponseBody, time
from app.models import sets
from app.models.bookings import Booking
from app.models.contacts import Contact
from app.models.sets import Key

STATUSES = ("booked", "cancelled")


def needs(workspace_id: str, payload: Mapping[str, Any], booking_id: str | None) -> list[Key]:
    """Returns the keys that a verb of this module gets from its unit."""
    if "contact_id" in payload:
        return [sets.key(Contact, workspace_id, "id", payload["contact_id"])]
    return [sets.key(Booking, workspace_id, "id", str(booking_id))]


def create(change: Change) -> Effect:
    """Creates the booking, and records the event. Raises Invalid if its contact does not exist."""
    payload = change.payload
    contact = contacts.find_named(change.workspace_id, payload["contact_id"], change.unit)
    booking = Booking(
        id=change.target,
        workspace_id=change.workspace_id,
        contact_id=contact.id,
        title=payload["title"],
        starts_at=datetime.fromisoformat(payload["starts_at"]),
        ends_at=datetime.fromisoformat(payload["ends_at"]),
        created_at=change.unit.now,
    )
    change.unit.put(booking)
    _record(change, "booking.created", contact, booking)
    return Effect("made", "booking", booking.id)


def cancel(change: Change) -> Effect:
    """Cancels the booking, and records the event, unless it is cancelled already. Raises NotFound."""
    booking = change.unit.get(Booking, change.workspace_id, "id", change.target)
    if booking is None:
        raise NotFound()
    contact = contacts.find(change.workspace_id, booking.contact_id, change.unit)
    if booking.status == "booked":
        cancelled = change.unit.put(booking.altered(status="cancelled"))
        _record(change, "booking.cancelled", contact, cancelled)
    return Effect("changed", "booking", booking.id)


class BookingSchema(ResponseBody):
    id = fields.String()
    contact_id = fields.String()
    title = fields.String()
    starts_at = time("When the booking begins.")
    ends_at = time("When the booking ends.")
    status = fields.String(validate=validate.OneOf(STATUSES))
    created_at = time("When the booking was created.")


represent = BookingSchema.of


def _record(change: Change, kind: str, contact: Contact, booking: Booking) -> None:
    data = {"contact": contacts.represent(contact), "booking": represent(booking)}
    change.events.record(kind, data, contact.id)
