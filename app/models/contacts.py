"""Contacts: the people a workspace talks to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from peewee import BooleanField, CompositeKey, IntegerField, TextField

from app import sql
from app.database import rows
from app.models.base import OwnedModel, TimeField, json_field, page_before, text_array

# Of the newest contacts so many are looked at first: where more than one in ten matches, these are enough for a page.
LOOKED_AT = 500
# A segment with so many contacts is full. What all of a larger one have takes longer to read and to sort; of smaller
# ones there are more, and each costs a look in the index.
SEGMENT_SIZE = 16_000
_UNIQUE = {"email", "phone", "external_id"}
_CONDITIONS = {
    "email": "lower(email) = lower(%(email)s)",
    "phone": "phone = %(phone)s",
    "external_id": "external_id = %(external_id)s",
    "tag": "tags @> ARRAY[%(tag)s]",
    "updated_since": "updated_at >= %(updated_since)s",
    "q": "search LIKE lower(%(pattern)s)",  # a generated column
}


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
    segment = IntegerField(default=0)
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
    def newest(cls, workspace_id: str, filters: Mapping[str, Any], last_id: str | None, limit: int) -> list[Contact]:
        """Those that match, newest first, up to so many after `last_id`.

        Filters: `email`, `phone`, `external_id`, `tag`, `updated_since`, `q`, all that are given.
        """
        given = {name: value for name, value in filters.items() if name in _CONDITIONS}
        if not given:
            return list(page_before(cls.in_workspace(workspace_id), cls, [last_id], limit))
        values = given | {
            "workspace_id": workspace_id,
            "last_id": last_id or "con_~",
            "limit": limit,
            "text": given.get("q", ""),
            "pattern": f"%{_escaped(given.get('q', ''))}%",
            "tags": [given["tag"]] if "tag" in given else [],
        }
        if given.keys() & _UNIQUE:
            found = _ids(_by_identifier(given), values)
        elif len(found := _ids(_among_newest(given), values)) < limit:
            found = _ids(_by_segment(given), values)
        return list(cls.select().where(cls.id.in_(found)).order_by(cls.id.desc())) if found else []


class ContactSegment(OwnedModel):
    """A run of a workspace's contacts, in the order of their identifiers, by which they are searched."""

    number = IntegerField()
    from_id = TextField()

    class Meta:
        table_name = "contact_segments"
        primary_key = CompositeKey("workspace_id", "number")

    @classmethod
    def open_at(cls, workspace_id: str, contact_id: str) -> None:
        """Lets a segment begin with a contact that is not stored yet, if the newest is full.

        The caller has the workspace's turn. Does nothing where a contact is there that is newer by its identifier.
        """
        values = {"workspace_id": workspace_id, "id": contact_id, "size": SEGMENT_SIZE}
        rows(sql.load("open_segment"), values)


def _by_identifier(given: Mapping[str, Any]) -> str:
    return f"SELECT id FROM contacts WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s AND {_all_of(given)}"


def _among_newest(given: Mapping[str, Any]) -> str:
    return f"""
        SELECT id FROM (
            SELECT * FROM contacts WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS newest
        WHERE {_all_of(given)} ORDER BY id DESC LIMIT %(limit)s
    """


def _by_segment(given: Mapping[str, Any]) -> str:
    """From the newest segment on each is asked by index, until the page is full."""
    indexed = []
    if given.keys() & {"q", "tag"}:
        sought = "contact_keys_sought(%(workspace_id)s, segments.number, lower(%(text)s), %(tags)s::text[])"
        indexed.append(f"contact_keys(workspace_id, segment, search, tags) @> {sought}")
    if "updated_since" in given:
        indexed.append("workspace_id = %(workspace_id)s AND segment = segments.number")
    # OFFSET keeps what is outside of it from the planner, which might find by that instead, however wrong its guess:
    # the order of the page, the identifier that this begins after, and, where keys are asked for, the workspace.
    return f"""
        SELECT found.id
        FROM generate_series(
            coalesce((
                SELECT number FROM contact_segments WHERE workspace_id = %(workspace_id)s AND from_id < %(last_id)s
                ORDER BY number DESC LIMIT 1), 0), 0, -1) AS segments(number)
        CROSS JOIN LATERAL (
            SELECT id FROM (
                SELECT id, workspace_id, segment FROM contacts
                WHERE {" AND ".join(indexed)} AND {_all_of(given)} OFFSET 0) AS matching
            WHERE workspace_id = %(workspace_id)s AND segment = segments.number AND id < %(last_id)s
            ORDER BY id DESC LIMIT %(limit)s) AS found
        LIMIT %(limit)s
    """


def _all_of(given: Mapping[str, Any]) -> str:
    return " AND ".join(_CONDITIONS[name] for name in given)


def _ids(query: str, values: Mapping[str, Any]) -> list[str]:
    return [id for (id,) in rows(query, values)]


def _escaped(text: str) -> str:
    """What LIKE takes for the text itself."""
    return re.sub(r"([\\%_])", r"\\\1", text)
