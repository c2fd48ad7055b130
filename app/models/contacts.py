"""Contacts: the people a workspace talks to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from peewee import BooleanField, TextField

from app import sql
from app.database import rows
from app.lib import ids
from app.models.base import OwnedModel, TimeField, json_field, page_before, text_array

# Of the newest contacts so many are looked at, before an index is asked for all that match: where more than one in a
# hundred matches, they are enough for a page; of what matches less often, an index soon has all. Where more than
# MANY match and the newest do not, to go on looking is quicker than to fetch and sort them.
LOOKED_AT = 5_000
MANY = 100_000
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
            "since_id": ids.around("con", given["updated_since"], -1) if "updated_since" in given else None,
        }
        found = [] if given.keys() & _UNIQUE else _among_newest(given, values)
        if len(found) < limit:
            found = _by_index(given, values)
        return list(cls.select().where(cls.id.in_(found)).order_by(cls.id.desc())) if found else []


def _among_newest(given: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    return _ids(
        f"""
        SELECT id FROM (
            SELECT * FROM contacts WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS newest
        WHERE {_all_of(given)} ORDER BY id DESC LIMIT %(limit)s
        """,
        values,
    )


def _by_index(given: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    wanted = "contact_keys(%(workspace_id)s, lower(%(text)s), %(tags)s::text[])"
    by_keys = f"AND contact_keys(workspace_id, search, tags) @> {wanted}" if given.keys() & {"q", "tag"} else ""
    plainly = f"SELECT id FROM contacts WHERE workspace_id = %(workspace_id)s AND {_all_of(given)}"
    matching = f"{plainly} {by_keys}"
    if given.keys() <= {"q", "tag"} and _expected(f"{matching} AND id < %(last_id)s", values) > MANY:
        return _ids(f"{plainly} AND id < %(last_id)s ORDER BY id DESC LIMIT %(limit)s", values)
    # Materialized, so that the planner cannot take the order of the page for a way to find few.
    if "updated_since" not in given:
        found = f"found AS MATERIALIZED ({matching} AND id < %(last_id)s)"
    else:
        # What was made since has changed since, too. Of the rest an index has what changed: it is asked without a range
        # of identifiers, so that the planner cannot read that instead.
        first = "" if by_keys else "ORDER BY id DESC LIMIT %(limit)s"
        found = f"""
            made AS MATERIALIZED ({matching} AND id < %(last_id)s AND id >= %(since_id)s {first}),
            changed AS MATERIALIZED ({matching} AND updated_at > created_at),
            found AS (TABLE made UNION ALL SELECT id FROM changed WHERE id < %(last_id)s AND id < %(since_id)s)
        """
    return _ids(f"WITH {found} SELECT id FROM found ORDER BY id DESC LIMIT %(limit)s", values)


def _expected(query: str, values: Mapping[str, Any]) -> int:
    """How many rows the planner expects. It keeps count of the keys that are frequent, which are of one workspace."""
    [(plan,)] = rows(f"EXPLAIN (FORMAT JSON) {query}", values)
    return int(plan[0]["Plan"]["Plan Rows"])


def _all_of(given: Mapping[str, Any]) -> str:
    return " AND ".join(_CONDITIONS[name] for name in given)


def _ids(query: str, values: Mapping[str, Any]) -> list[str]:
    return [id for (id,) in rows(query, values)]


def _escaped(text: str) -> str:
    """What LIKE takes for the text itself."""
    return re.sub(r"([\\%_])", r"\\\1", text)
