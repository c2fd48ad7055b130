"""Sales: what contacts paid."""

from __future__ import annotations

from typing import Any

from peewee import DecimalField, TextField

from app.models.base import OwnedModel, TimeField


class Sale(OwnedModel):
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
    def matching(cls, workspace_id: str, filters: dict[str, Any]) -> Any:
        """The query behind the list: `contact_id`, `reference`, `occurred_since`, `occurred_until`, all given."""
        query = cls.in_workspace(workspace_id)
        for name in ("contact_id", "reference"):
            if name in filters:
                query = query.where(getattr(cls, name) == filters[name])
        if "occurred_since" in filters:
            query = query.where(cls.occurred_at >= filters["occurred_since"])
        if "occurred_until" in filters:
            query = query.where(cls.occurred_at < filters["occurred_until"])
        return query

    @classmethod
    def forget_contact(cls, contact_id: str) -> None:
        """Takes away what leads from its sales to the contact."""
        cls.update(contact_id=None, reference=None).where(cls.contact_id == contact_id).execute()
