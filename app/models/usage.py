"""Usage: amounts by workspace and day, how far they are counted, and which contacts are counted."""

from __future__ import annotations

from peewee import BigIntegerField, CompositeKey, DateField, TextField

from app.models.base import BaseModel, OwnedModel, TimeField


class UsageDay(OwnedModel):
    day = DateField()
    meter = TextField()
    amount = BigIntegerField()

    class Meta:
        table_name = "usage_days"
        primary_key = CompositeKey("workspace_id", "day", "meter")


class UsageProgress(BaseModel):
    meter = TextField(primary_key=True)
    counted_until = TimeField()

    class Meta:
        table_name = "usage_progress"


class ActiveContact(OwnedModel):
    month = DateField()
    contact_id = TextField()

    class Meta:
        table_name = "active_contacts"
        primary_key = CompositeKey("month", "workspace_id", "contact_id")
