"""Contacts: the people a workspace talks to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from peewee import SQL, BooleanField, TextField, fn

from app import sql
from app.models.base import OwnedModel, TimeField, json_field, text_array


class Contact(OwnedModel):
    id = TextField(primary_key=True)
    external_id = TextField(null=True)
    email = TextField(null=True)
    phone = TextField(null=True)
    first_name = TextField(null=True)
    last_name = TextField(null=True)
    locale = TextField(null=True)
    timezone = TextField(null=True)
    tags = text_array()
    custom_fields = json_field()
    opted_out = BooleanField(default=False)
    created_at = TimeField()
    updated_at = TimeField()

    class Meta:
        table_name = "contacts"

    @classmethod
    def one(cls, workspace_id: str, contact_id: str) -> Contact | None:
        """Written down because it is read so often: to build it would cost peewee more than all the rest of a read."""
        return next(iter(cls.raw(sql.load("find_contact"), workspace_id, contact_id)), None)

    @classmethod
    def holding(cls, workspace_id: str, identifiers: Mapping[str, str]) -> list[Contact]:
        """The contacts that hold any of `external_id`, `email` (in any case) and `phone`."""
        given = [identifiers.get(name) for name in ("external_id", "email", "phone")]
        return list(cls.raw(sql.load("contacts_holding"), workspace_id, *given))

    @classmethod
    def matching(cls, workspace_id: str, filters: dict[str, Any]) -> Any:
        """The query of the list: `email`, `phone`, `external_id`, `tag`, `updated_since`, `q`, all that are given."""
        query = cls.in_workspace(workspace_id)
        if "email" in filters:
            query = query.where(fn.lower(cls.email) == fn.lower(filters["email"]))
        for name in ("phone", "external_id"):
            if name in filters:
                query = query.where(getattr(cls, name) == filters[name])
        if "tag" in filters:
            query = query.where(cls.tags.contains(filters["tag"]))
        if "updated_since" in filters:
            query = query.where(cls.updated_at >= filters["updated_since"])
        if "q" in filters:
            pattern = re.sub(r"([\\%_])", r"\\\1", filters["q"])
            query = query.where(SQL("search LIKE lower(%s)", (f"%{pattern}%",)))  # a generated column
        return query
