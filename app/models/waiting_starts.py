"""Waiting starts: runs that triggers by time will start."""

from __future__ import annotations

from typing import ClassVar

from peewee import BooleanField, TextField

from app.models.base import OwnedModel, TimeField


class WaitingStart(OwnedModel):
    """What a trigger by time does for a booking. `key`: the trigger. `at`: when to look at it.

    `has_fired`: it has started its run, or was published too late for it.
    """

    FIXED: ClassVar[frozenset[str]] = frozenset({"automation_id", "key", "booking_id"})

    id = TextField(primary_key=True)
    automation_id = TextField()
    key = TextField()
    booking_id = TextField()
    at = TimeField()
    has_fired = BooleanField(default=False)

    @staticmethod
    def id_of(automation_id: str, booking_id: str, key: str) -> str:
        """The identifier of what that trigger does for that booking."""
        return f"{booking_id}/{automation_id}/{key}"
