"""Waiting starts: runs that triggers by time will start, the mail of a workspace once their time has come."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from peewee import TextField

from app.models.base import MailModel, TimeField


class WaitingStart(MailModel):
    """A start for a booking or for a contact. `key`: the trigger. `starts_at`: its time; null once that has come."""

    FIXED: ClassVar[frozenset[str]] = frozenset({"automation_id", "key", "booking_id", "contact_id"})

    id = TextField(primary_key=True)
    automation_id = TextField()
    key = TextField()
    booking_id = TextField(null=True)
    contact_id = TextField(null=True)
    starts_at = TimeField(null=True)

    @staticmethod
    def id_of(automation_id: str, about_id: str, key: str) -> str:
        """The identifier of that trigger's start for that booking or contact."""
        return f"{about_id}/{automation_id}/{key}"

    @property
    def at(self) -> datetime:
        """When it starts, or should have."""
        at: datetime = self.starts_at or self.due_at
        return at
