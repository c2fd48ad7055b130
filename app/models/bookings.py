"""Bookings: the times that contacts have booked."""

from __future__ import annotations

from peewee import TextField

from app.models.base import OwnedModel, TimeField


class Booking(OwnedModel):
    PREFIX = "bkg"
    FILTERS = ("contact_id", "status")
    TIME = "starts"

    contact_id = TextField()
    title = TextField()
    starts_at = TimeField()
    ends_at = TimeField()
    status = TextField(default="booked")
    created_at = TimeField()
