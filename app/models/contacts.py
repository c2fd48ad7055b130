"""Contacts: the people a workspace talks to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import random
from typing import Any, ClassVar
from unicodedata import normalize

from peewee import BooleanField, CompositeKey, IntegerField, TextField

from app import sql
from app.database import rows
from app.lib import normalization, phones
from app.models.base import OwnedModel, TimeField, json_field, page_before, text_array

# A search first tries this many of the newest contacts. If more than one in ten matches, they fill a page.
LOOKED_AT = 500
# A segment with this many contacts is full. Larger ones take longer to read and sort; smaller ones cost more lookups.
SEGMENT_SIZE = 16_000
# On average, one of this many new contacts makes its transaction count the contacts of the newest segment.
COUNTED_EVERY = 250
# The most tags that are suggested while a tag is typed.
MOST_OFFERED = 200
_UNIQUE = {"email", "phone", "external_id"}
_CONDITIONS = {
    "email": "lower(email) = lower(%(email)s)",
    "phone": "phone = ANY(%(phones)s::text[])",
    "external_id": "external_id = %(external_id)s",
    "tag": """EXISTS (SELECT FROM unnest(tags) AS each
        WHERE plain_search(lower(btrim(each))) = plain_search(lower(btrim(%(tag)s))))""",
    "updated_since": "updated_at >= %(updated_since)s",
    # `search` is a generated column, and `plain_search` a function in the database.
    "q": "plain_search(search) LIKE plain_search(lower(%(pattern)s))",
    "words": """plain_search(search)
        LIKE ALL (SELECT plain_search(lower(pattern)) FROM unnest(%(patterns)s::text[]) AS pattern)""",
}


_RECENT_TAGS = f"""
    SELECT tag FROM (
        SELECT unnest(tags) AS tag FROM (
            SELECT tags FROM contacts WHERE workspace_id = %(workspace_id)s ORDER BY id DESC LIMIT {LOOKED_AT}
        ) AS newest) AS used
    GROUP BY tag ORDER BY count(*) DESC, tag LIMIT {MOST_OFFERED}
"""


class Contact(OwnedModel):
    KEYS: ClassVar[Mapping[str, str]] = {"external_id": "{}", "email": "lower({})", "phone": "{}"}
    COMPUTED: ClassVar[Mapping[str, str]] = {
        "segment": """coalesce((
            SELECT number FROM contact_segments WHERE workspace_id = new.workspace_id AND from_id <= new.id
            ORDER BY number DESC LIMIT 1), 0)"""
    }

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

    @classmethod
    def one(cls, workspace_id: str, contact_id: str) -> Contact | None:
        """Returns the contact; None if there is none."""
        # Raw SQL, because building the query with peewee would take longer than the whole read.
        return next(iter(cls.raw(sql.load("find_contact"), workspace_id, contact_id)), None)

    @classmethod
    def newest(cls, workspace_id: str, filters: Mapping[str, Any], last_id: str | None, limit: int) -> list[Contact]:
        """Returns the first `limit` contacts after `last_id` that match every filter, newest first.

        Filters: `email`, `phone` (in any form of the number), `external_id`, `tag`, `updated_since`, `q`, and `words`,
        all of which must occur in the text that `q` searches.
        """
        given = _given(filters)
        if not given:
            return list(page_before(cls.in_workspace(workspace_id), cls, [last_id], limit))
        found = _matching(workspace_id, given, last_id, limit)
        return list(cls.select().where(cls.id.in_(found)).order_by(cls.id.desc())) if found else []

    @classmethod
    def count_matching(cls, workspace_id: str, filters: Mapping[str, Any], most: int) -> int:
        """Returns how many contacts match every filter, as for `newest`; counts no further than `most`."""
        if given := _given(filters):
            return len(_matching(workspace_id, given, None, most))
        return int(cls.in_workspace(workspace_id).limit(most).count())

    @classmethod
    def recent_tags(cls, workspace_id: str) -> list[str]:
        """Returns the most frequent tags of the newest contacts, sorted; at most MOST_OFFERED."""
        return sorted(_ids(_RECENT_TAGS, {"workspace_id": workspace_id}))

    @classmethod
    def sought(cls, filters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Returns an SQL condition on contacts for the filters of `newest`, and its parameters."""
        given = _given(filters)
        return _all_of(given) or "true", _values(given)


class ContactSegment(OwnedModel):
    """A range of a workspace's contacts, by identifier. A search reads segment after segment."""

    number = IntegerField()
    from_id = TextField()

    class Meta:
        primary_key = CompositeKey("workspace_id", "number")

    @classmethod
    def open_before(cls, new: Sequence[Contact]) -> None:
        """Opens a segment for contacts about to be inserted, if their workspace's newest one is full.

        Counts only now and then (see COUNTED_EVERY), and never while another transaction is creating contacts in the
        workspace: creators share a lock (see `sets.reserve`) that this function takes exclusively. Each insert
        therefore sees all segments.
        """
        for workspace_id, first_id in _first_ids(new).items():
            lock = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
            if rows(lock, (f"contact_segments {workspace_id}",))[0][0]:
                rows(sql.load("open_segment"), {"workspace_id": workspace_id, "id": first_id, "size": SEGMENT_SIZE})


def _first_ids(new: Sequence[Contact]) -> dict[str, str]:
    """Returns the smallest new identifier of each workspace whose contacts are to be counted now."""
    drawn = {contact.workspace_id for contact in new if random() < 1 / COUNTED_EVERY}
    return {each: min(contact.id for contact in new if contact.workspace_id == each) for each in drawn}


def _given(filters: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in filters.items() if name in _CONDITIONS}
    # Normalizes full-width text before it becomes a pattern.
    if "q" in given:
        given["q"] = normalize("NFKC", given["q"])
    if "words" in given:
        given["words"] = [normalize("NFKC", word) for word in given["words"]]
    return given


def _matching(workspace_id: str, given: Mapping[str, Any], last_id: str | None, limit: int) -> list[str]:
    """Returns the identifiers of the first `limit` matching contacts after `last_id`, newest first."""
    values = {**_values(given), "workspace_id": workspace_id, "last_id": last_id or "con_~", "limit": limit}
    if given.keys() & _UNIQUE:
        whole = "SELECT id FROM contacts WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s"
        return _ids(f"{whole} AND {_all_of(given)}", values)
    if limit <= LOOKED_AT and len(found := _ids(_among_newest(given), values)) == limit:
        return found
    return _ids(_by_segment(given), values)


def _values(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **given,
        "phones": phones.ways_to_write(given["phone"]) if "phone" in given else [],
        "text": given.get("q", ""),
        "pattern": f"%{_escaped(given.get('q', ''))}%",
        "patterns": [f"%{_escaped(word)}%" for word in given.get("words", ())],
        "tag_key": normalization.folded(given.get("tag", "")).strip().encode("ascii", "ignore").decode(),
        **{f"word{number}": word for number, word in enumerate(given.get("words", ()))},
    }


def _among_newest(given: Mapping[str, Any]) -> str:
    return f"""
        SELECT id FROM (
            SELECT * FROM contacts WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s
            ORDER BY id DESC LIMIT {LOOKED_AT}) AS newest
        WHERE {_all_of(given)} ORDER BY id DESC LIMIT %(limit)s
    """


def _by_segment(given: Mapping[str, Any]) -> str:
    """Returns SQL that looks each segment up by index, newest first, until the page is full."""
    indexed = []
    if "tag" in given:
        indexed.append(_HAS_TAG_KEY)
    if "q" in given:
        indexed.append(_has_keys_of("text"))
    indexed += [_has_keys_of(f"word{number}") for number in range(len(given.get("words", ())))]
    if "updated_since" in given:
        indexed.append("workspace_id = %(workspace_id)s AND segment = segments.number")
    # OFFSET 0 keeps the planner from using another index because of wrong estimates: an index for the order, for the
    # start of the page or, if keys are given, for the workspace.
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


# The index has the key of 'ß' for each tag with non-ASCII characters that may fold into ASCII. This finds contacts with
# the tag's key or that key; the condition `tag` then compares the tags themselves.
_HAS_TAG_KEY = """contact_keys(workspace_id, segment, search, tags)
    && contact_keys(%(workspace_id)s, segments.number, '', ARRAY[%(tag_key)s, 'ß'])"""


def _has_keys_of(text: str) -> str:
    sought = f"contact_keys_sought(%(workspace_id)s, segments.number, lower(%({text})s), '{{}}')"
    return f"contact_keys(workspace_id, segment, search, tags) @> {sought}"


def _all_of(given: Mapping[str, Any]) -> str:
    return " AND ".join(_CONDITIONS[name] for name in given)


def _ids(query: str, values: Mapping[str, Any]) -> list[str]:
    return [id for (id,) in rows(query, values)]


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
