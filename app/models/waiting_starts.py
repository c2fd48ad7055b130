"""Waiting starts: the states of time triggers, which will start runs."""

from __future__ import annotations

from typing import ClassVar

from peewee import BooleanField, DateField, TextField

from app.models.base import OwnedModel, TimeField


class WaitingStart(OwnedModel):
    """The state of a time trigger for a booking or a contact. `key`: the trigger.

    `at`: when to check the trigger; None: never. `fired_for`: the latest day (of the booking or date) that is done
    with: a run was started, or the trigger was published too late. `is_unreadable`: the contact's value is not a date.
    """

    FIXED: ClassVar[frozenset[str]] = frozenset({"automation_id", "key", "booking_id", "contact_id"})

    automation_id = TextField()
    key = TextField()
    booking_id = TextField(null=True)
    contact_id = TextField(null=True)
    at = TimeField(null=True)
    fired_for = DateField(null=True)
    is_unreadable = BooleanField(default=False)

    @staticmethod
    def id_of(automation_id: str, about_id: str, key: str) -> str:
        """Returns the identifier of that trigger's state for that booking or contact."""
        return f"{about_id}/{automation_id}/{key}"
