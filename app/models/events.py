"""Events: what happened in a workspace, with the bytes that every delivery sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peewee import BlobField, IntegerField, TextField

from app.database import rows
from app.lib import ids
from app.models.base import MailModel, TimeField


class Event(MailModel):
    PREFIX = "evt"

    kind = TextField()
    contact_id = TextField(null=True)
    job_id = TextField(null=True)
    trace_id = TextField()
    run_id = TextField(null=True)
    depth = IntegerField(default=0)
    body = BlobField()
    created_at = TimeField()
    # Set while the event's deliveries are created after its commit: see app/domain/deliveries/fan_out.py.
    fan_out_after = TextField(default="")

    @classmethod
    def newest(
        cls, workspace_id: str, kinds: Sequence[str], filters: Mapping[str, Any], last_id: str | None, limit: int
    ) -> list[Event]:
        """Returns the first `limit` matching events of these kinds after `last_id`, newest first.

        Filters: `kind` (then pass only this kind as `kinds`), `contact_id`, `since` and `until`.
        """
        since, until = filters.get("since"), filters.get("until")
        by_contact = "contact_id" in filters
        # The query compares identifiers, which is approximate, to use the index, and then times, which is exact.
        ends = [last_id or "evt_~"] + ([ids.around("evt", until, 1)] if until else [])
        parameters = {
            "workspace_id": workspace_id,
            "kind": filters.get("kind") if by_contact else None,
            "values": [filters["contact_id"]] if by_contact else list(kinds),
            "first_id": ids.around("evt", since, -1) if since else "",
            "last_id": min(ends),
            "since": since,
            "until": until,
            "limit": limit,
        }
        found = rows(_NEWEST.format(column="contact_id" if by_contact else "kind"), parameters)
        return list(cls.select().where(cls.id.in_([id for (id,) in found])).order_by(cls.id.desc())) if found else []


# Reads the newest events of each kind, or of the contact, from an index. Compares whole index tuples, so that the
# planner reads the index in order.
_NEWEST = """
    SELECT newest.id FROM unnest(%(values)s::text[]) AS wanted(value) CROSS JOIN LATERAL (
        SELECT id FROM events
        WHERE workspace_id = %(workspace_id)s AND {column} IS NOT NULL AND (%(kind)s::text IS NULL OR kind = %(kind)s)
            AND id >= %(first_id)s AND id < %(last_id)s
            AND ({column}, id) >= (wanted.value, %(first_id)s) AND ({column}, id) < (wanted.value, %(last_id)s)
            AND created_at >= coalesce(%(since)s::timestamptz, '-infinity')
            AND created_at < coalesce(%(until)s::timestamptz, 'infinity')
        ORDER BY {column} DESC, id DESC LIMIT %(limit)s) AS newest
    ORDER BY newest.id DESC LIMIT %(limit)s
"""
