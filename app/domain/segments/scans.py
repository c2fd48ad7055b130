"""Scans: find the contacts of a segment, part by part, in the order of their ids.

A part examines a limited number of contacts, so its cost does not depend on how many it finds. SQL decides about most
contacts, and `conditions.holds` about the rest. If the condition needs a tag, only contacts with the tag's search key
are examined.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from app.database import now, rows
from app.domain.contacts import contacts
from app.domain.segments.translations import Translation, needed_tags
from app.domain.triggers import conditions
from app.domain.triggers.conditions import holds
from app.lib import json
from app.models.contacts import Contact

# Fields that filters can name but the API's contact does not show.
FURTHER_FIELDS = ("last_received_at", "last_sent_at", "channel_kinds")
MOST_COUNTED_SECONDS, MOST_LISTED_SECONDS = 5.0, 1.0
SAMPLE = 10
# How many contacts one statement examines. Fewer at first, as these may be enough, and fewer if the filter has many
# comparisons.
_FIRST_ROWS, _LEAST_ROWS, _COMPARISONS = 5_000, 100, 25_000
# The most tags that are looked up together: each costs an index lookup in every ContactSegment.
_MOST_TAGS = 10
# How many contacts are loaded at a time for `conditions.holds`.
_TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Counted:
    """How many contacts were found. `is_complete`: False if there was no time to examine all."""

    count: int
    is_complete: bool
    sample: list[Contact]


class Part(NamedTuple):
    """The matching contacts of a part, in order, and the last contact examined; None at the end."""

    ids: list[str]
    last_id: str | None


@dataclass(frozen=True, slots=True)
class Scan:
    """A pass through the contacts of a workspace, newest or oldest first.

    `condition`: a valid filter. `filters`: filters of the list of contacts, which must match too. `at`: the time from
    which `days_ago` counts back, None for now; contacts created later are left out.
    """

    workspace_id: str
    condition: Mapping[str, Any]
    is_newest_first: bool = True
    filters: Mapping[str, Any] | None = None
    at: datetime | None = None

    def parts(self, seconds: float, after: str | None = None) -> Iterator[Part]:
        """Yields the parts after the contact `after`, until the end or for `seconds`; at least one."""
        ends = time.monotonic() + seconds
        query = _Query(self)
        size = min(_FIRST_ROWS, query.most_rows)
        while True:
            part = query.part(after, size, ends)
            yield part
            after, size = part.last_id, min(2 * size, query.most_rows)
            if after is None or time.monotonic() > ends:
                return


def count(workspace_id: str, condition: Mapping[str, Any]) -> Counted:
    """Counts contacts that meet the condition, for up to MOST_COUNTED_SECONDS; samples the newest."""
    number, is_complete = 0, False
    sample: list[str] = []
    for part in Scan(workspace_id, condition).parts(MOST_COUNTED_SECONDS):
        number += len(part.ids)
        sample += part.ids[: SAMPLE - len(sample)]
        is_complete = part.last_id is None
    return Counted(number, is_complete, _read(sample))


def page(
    workspace_id: str, condition: Mapping[str, Any], filters: Mapping[str, Any], last_id: str | None, limit: int
) -> tuple[list[Contact], str | None]:
    """Returns up to `limit` contacts that meet the condition and the filters, newest first.

    The page begins after `last_id`. Also returns the contact after which the list continues; None at its end. A page
    may have fewer contacts, even none, and still not be the last: the search stops after MOST_LISTED_SECONDS.
    """
    found: list[str] = []
    scan = Scan(workspace_id, condition, filters=filters)
    for part in scan.parts(MOST_LISTED_SECONDS, last_id):
        found += part.ids
        if len(found) > limit:
            return _read(found[:limit]), found[limit - 1]
        last_id = part.last_id
    return _read(found), last_id


def variables(contact: Contact, further: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values that a filter can name, as in events. `further`: values of FURTHER_FIELDS."""
    shown = {**contacts.represent(contact), **further}
    written = {name: json.timestamp(value) for name, value in shown.items() if isinstance(value, datetime)}
    return {"contact": shown | written}


def further_fields(contact_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns the FURTHER_FIELDS of the contacts, by contact id."""
    columns = ", ".join(_FURTHER[name] for name in FURTHER_FIELDS)
    found = rows(f"SELECT id, {columns} FROM contacts WHERE id = ANY(%s)", (list(contact_ids),))
    return {contact_id: dict(zip(FURTHER_FIELDS, values, strict=True)) for contact_id, *values in found}


class _Query:
    """Runs the statement for each part of a scan, and judges the contacts that SQL is unsure of."""

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self._condition = conditions.at_time(scan.condition, scan.at or now())
        translation = Translation(self._condition)
        named = {field.split(".")[1] for _, field in conditions.fields(self._condition) if "." in field}
        columns = "".join(f", {_FURTHER[name]} AS {name}" for name in FURTHER_FIELDS if name in named)
        self._names_further = bool(columns)
        filtered, values = Contact.sought(scan.filters or {})
        tags = needed_tags(self._condition)[:_MOST_TAGS]
        order = _NEWEST if scan.is_newest_first else _OLDEST
        keys = " AND ".join(_HAS_KEY.format(place=place) for place in range(len(tags)))
        self._sql = _PART.format(
            columns=columns,
            contacts=(_WITH_KEYS if tags else _ALL).format(keys=keys, **order),
            verdict=f"coalesce({filtered}, false) AND {translation.sql}",
            **order,
        )
        self.most_rows = max(_COMPARISONS // (1 + sum(1 for _ in conditions.fields(self._condition))), _LEAST_ROWS)
        self._values = {
            **values,
            **translation.values,
            **{f"tag_{place}": tag for place, tag in enumerate(tags)},
            "workspace_id": scan.workspace_id,
            "at": scan.at,
        }

    def part(self, after: str | None, size: int, ends: float) -> Part:
        first = "con_~" if self._scan.is_newest_first else ""
        values = {**self._values, "after": after or first, "size": size}
        [(looked_at, last_id, certain, unsure)] = rows(self._sql, values)
        judged, reached = self._judge(unsure or [], ends)
        found = sorted([*(certain or []), *judged], reverse=self._scan.is_newest_first)
        if reached is not None:
            return Part([each for each in found if not self._is_beyond(each, reached)], reached)
        return Part(found, last_id if looked_at == size else None)

    def _judge(self, unsure: Sequence[str], ends: float) -> tuple[list[str], str | None]:
        """Returns the contacts that meet the condition, and the last contact judged if time ran out."""
        found: list[str] = []
        reached: str | None = None
        for start in range(0, len(unsure), _TOGETHER):
            some = unsure[start : start + _TOGETHER]
            read = {contact.id: contact for contact in _read(some)}
            further = further_fields(some) if self._names_further else {}
            for contact_id in some:
                if reached is not None and time.monotonic() > ends:
                    return found, reached
                contact, reached = read.get(contact_id), contact_id
                if contact and holds(self._condition, variables(contact, further.get(contact_id, {}))):
                    found.append(contact_id)
        return found, None

    def _is_beyond(self, one: str, other: str) -> bool:
        return one < other if self._scan.is_newest_first else one > other


def _read(contact_ids: Sequence[str]) -> list[Contact]:
    return list(Contact.select().where(Contact.id.in_(contact_ids)).order_by(Contact.id.desc())) if contact_ids else []


_FURTHER = {
    "last_received_at": """
        (SELECT max(coalesce(provider_time, messages.created_at)) FROM messages
            WHERE contact_id = contacts.id AND direction = 'in')""",
    "last_sent_at": "(SELECT max(sent_at) FROM messages WHERE contact_id = contacts.id AND sent_at IS NOT NULL)",
    "channel_kinds": """
        ARRAY(SELECT DISTINCT channel_kind COLLATE "C" FROM identities WHERE contact_id = contacts.id ORDER BY 1)""",
}
_NEWEST = {"order": "DESC", "beyond": "<", "last": "min", "end": "0", "step": "-1"}
_OLDEST = {"order": "ASC", "beyond": ">", "last": "max", "end": "newest", "step": "1"}
# Without the OFFSET, PostgreSQL would compute each contact's verdict twice.
_PART = """
    SELECT count(*), {last}(id), array_agg(id) FILTER (WHERE is_in),
        array_agg(id ORDER BY id {order}) FILTER (WHERE is_in IS NULL)
    FROM (
        SELECT id, (%(at)s::timestamptz IS NULL OR created_at <= %(at)s) AND {verdict} AS is_in FROM (
            SELECT *{columns} FROM ({contacts}) AS contacts) AS contact OFFSET 0) AS judged
"""
_ALL = """
    SELECT * FROM contacts WHERE workspace_id = %(workspace_id)s AND id {beyond} %(after)s
    ORDER BY id {order} LIMIT %(size)s
"""
# The index of keys returns contacts in no order, so they are read segment by segment. As in searches (Contact.newest),
# the OFFSET keeps the planner from using any other index.
_WITH_KEYS = """
    SELECT found.*
    FROM (
        SELECT coalesce(max(number) FILTER (WHERE from_id <= %(after)s), 0) AS first, coalesce(max(number), 0) AS newest
        FROM contact_segments WHERE workspace_id = %(workspace_id)s) AS numbers
    CROSS JOIN generate_series(first, {end}, {step}) AS segments(number)
    CROSS JOIN LATERAL (
        SELECT * FROM (SELECT * FROM contacts WHERE {keys} OFFSET 0) AS matching
        WHERE workspace_id = %(workspace_id)s AND segment = segments.number AND id {beyond} %(after)s
        ORDER BY id {order} LIMIT %(size)s) AS found
    LIMIT %(size)s
"""
# All tags with characters that may fold into ASCII have the key of 'ß', so contacts with that key are examined too.
_HAS_KEY = (
    "contact_keys(workspace_id, segment, search, tags)"
    " && contact_keys(%(workspace_id)s, segments.number, '', ARRAY[%(tag_{place})s, 'ß'])"
)
