"""Bookings: the appointments of contacts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from flask import Response
from marshmallow import ValidationError, fields, validate, validates_schema

from app.api.authentication import caller
from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act
from app.domain.contacts import bookings, contacts
from app.domain.contacts.bookings import STATUSES, BookingSchema
from app.lib import ids
from app.lib.schemas import STORABLE, RequestBody, Time, about, time_field
from app.models.bookings import Booking

blueprint = Blueprint("bookings", __name__, description="The appointments of contacts.")

SHORTEST = timedelta(milliseconds=1)  # the precision of times in the API


class BookingCreate(RequestBody):
    """A booking to create. It ends at least SHORTEST after it begins."""

    contact_id = fields.String(required=True, metadata=about("The contact who has booked."))
    title = fields.String(required=True, validate=validate.Length(1, 255), metadata={"example": "Haircut"})
    starts_at = Time(required=True, validate=STORABLE, metadata=about("RFC 3339."))
    ends_at = time_field("after starts_at.", required=True)

    @validates_schema
    def begins_before_it_ends(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError unless the booking ends after it begins."""
        if data["ends_at"] - data["starts_at"] < SHORTEST:
            raise ValidationError("This must be after starts_at.", "ends_at")


class BookingQuery(PageQuery):
    contact_id = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    starts_since = time_field("begins at this time or later. Orders the list by starts_at.")
    starts_until = time_field("begins before this time. Orders the list by starts_at.")


@reads(blueprint, "/bookings", "contacts", BookingSchema, BookingQuery)
def list_bookings(query: dict[str, Any]) -> Document:
    """List bookings, the latest created first; with a time range, the latest to begin first."""
    return page(Booking, query, bookings.represent)


@accepts(blueprint, "POST /bookings", "contacts", BookingSchema, BookingCreate, made=True)
def create_booking(body: dict[str, Any]) -> Response:
    """Create a booking for a contact."""
    workspace_id, contact_id = caller().workspace_id, body["contact_id"]
    return accept("bookings.create", body, ids.new("bkg"), check=lambda: contacts.find_named(workspace_id, contact_id))


shows(blueprint, "booking", "contacts", BookingSchema, "Show a booking.")


@accepts(blueprint, "POST /bookings/<booking_id>/cancel", "contacts", BookingSchema)
def cancel_booking(booking_id: str) -> Response:
    """Cancel a booking; nothing changes if it is already cancelled."""
    return act("bookings.cancel", booking_id)
