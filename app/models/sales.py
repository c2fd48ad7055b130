"""Sales: payments of contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from peewee import DecimalField, TextField

from app.models.base import OwnedModel, TimeField


class Sale(OwnedModel):
    PREFIX = "sal"
    FILTERS = ("contact_id", "reference")
    TIME = "occurred"
    KEYS: ClassVar[Mapping[str, str]] = {"reference": "{}"}

    contact_id = TextField(null=True)
    amount = DecimalField()
    currency = TextField()
    reference = TextField(null=True)
    occurred_at = TimeField()
    created_at = TimeField()

    @classmethod
    def forget_contact(cls, sale_ids: Sequence[str]) -> None:
        """Removes the contact, and the reference, from these sales."""
        cls.update(contact_id=None, reference=None).where(cls.id.in_(sale_ids)).execute()
