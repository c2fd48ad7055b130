"""Sales: what contacts paid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from peewee import DecimalField, TextField

from app.models.base import OwnedModel, TimeField


class Sale(OwnedModel):
    FILTERS = ("contact_id", "reference")
    TIME = "occurred"
    KEYS: ClassVar[Mapping[str, str]] = {"reference": "{}"}

    id = TextField(primary_key=True)
    contact_id = TextField(null=True)
    amount = DecimalField()
    currency = TextField()
    reference = TextField(null=True)
    occurred_at = TimeField()
    created_at = TimeField()

    class Meta:
        table_name = "sales"

    @classmethod
    def forget_contact(cls, contact_id: str) -> None:
        """Removes the contact, and the reference, from its sales."""
        cls.update(contact_id=None, reference=None).where(cls.contact_id == contact_id).execute()
