"""Bookings: made for a contact that is there, cancelled once."""

from __future__ import annotations

from typing import Any

from app import sql
from app.database import rows
from app.domain import contacts
from app.domain.changes import Change, Effect
from app.models.bookings import Booking
from app.models.contacts import Contact


def create(change: Change) -> Effect:
    """Makes the booking. Raises Invalid where its contact is gone."""
    payload = change.payload
    contact = contacts.find_named(change.workspace_id, payload["contact_id"])
    booking = Booking(
        id=change.target,
        workspace_id=change.workspace_id,
        contact_id=contact.id,
        title=payload["title"],
        starts_at=payload["starts_at"],
        ends_at=payload["ends_at"],
    )
    stored = rows(sql.load("insert_booking"), booking.__data__)
    [(booking.status, booking.starts_at, booking.ends_at, booking.created_at)] = stored
    _record(change, "booking.created", contact, booking)
    return Effect("made", "booking", booking.id)


def cancel(change: Change) -> Effect:
    """Cancels the booking; nothing happens if it is cancelled already. Raises NotFound."""
    booking = find(change.workspace_id, change.target)
    is_booked = (Booking.id == booking.id) & (Booking.status == "booked")
    if Booking.update(status="cancelled").where(is_booked).execute():
        booking.status = "cancelled"
        _record(change, "booking.cancelled", contacts.find(change.workspace_id, booking.contact_id), booking)
    return Effect("changed", "booking", booking.id)


def find(workspace_id: str, booking_id: str) -> Booking:
    """Raises NotFound."""
    return Booking.get_in(workspace_id, booking_id, "bkg")


def represent(booking: Booking) -> dict[str, Any]:
    return {
        "id": booking.id,
        "contact_id": booking.contact_id,
        "title": booking.title,
        "starts_at": booking.starts_at,
        "ends_at": booking.ends_at,
        "status": booking.status,
        "created_at": booking.created_at,
    }


def _record(change: Change, kind: str, contact: Contact, booking: Booking) -> None:
    data = {"contact": contacts.represent(contact), "booking": represent(booking)}
    change.events.record(kind, data, contact.id)
