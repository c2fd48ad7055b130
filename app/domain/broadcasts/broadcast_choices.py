"""Choices: the contacts that a broadcast is for, stored when it starts, or counted for a preview.

Contacts are found in slices, so that a million of them hold up neither a transaction nor the worker. Contacts created
after the start are left out.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from app.channels.kinds import CHANNEL_KINDS
from app.database import rows
from app.domain.segments import scans, segments
from app.domain.segments.scans import Scan
from app.lib import time_zones
from app.models.broadcasts import Broadcast
from app.models.contacts import Contact

# The most contacts that are stored in one part of a broadcast.
PART = 500
# How long one transaction looks for contacts.
SLICE_SECONDS = 0.25
# How long a preview looks for contacts to leave out, after counting.
MOST_LOOKED_AT_SECONDS = 5.0
# The time zone whose clock is ahead of all others.
_EARLIEST = timezone(timedelta(hours=14))


@dataclass(frozen=True, slots=True)
class Preview:
    """The contacts that a broadcast would be for. `left_out` accounts for `looked_at` of them."""

    count: int
    is_complete: bool
    left_out: Mapping[str, int]
    looked_at: int
    sample: Sequence[Contact]


def preview(workspace_id: str, condition: Mapping[str, Any], payload: Mapping[str, Any]) -> Preview:
    """Counts the contacts that would get the broadcast now, and the others by reason."""
    counted = scans.count(workspace_id, condition)
    left_out: Counter[str] = Counter()
    looked_at, ends = 0, time.monotonic() + MOST_LOOKED_AT_SECONDS
    for part in Scan(workspace_id, condition).parts(MOST_LOOKED_AT_SECONDS):
        for start in range(0, len(part.ids), PART):
            if time.monotonic() > ends:
                break
            some = part.ids[start : start + PART]
            left_out.update(_left_out(workspace_id, some, payload))
            looked_at += len(some)
    number = counted.count - sum(left_out.values())
    return Preview(number, counted.is_complete, dict(sorted(left_out.items())), looked_at, counted.sample)


def condition_of(workspace_id: str, payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the filter of the payload, or of its segment; None if there is no such segment."""
    if payload.get("filter") is not None:
        return dict(payload["filter"])
    segment = segments.find(workspace_id, payload["segment_id"])
    return segment.filter if segment else None


def starts_at(send_at: datetime | None, time_zone: str, own_zone: str | None) -> datetime | None:
    """Returns when the broadcast starts; None for at once.

    If it follows the contacts' clocks, the broadcast starts when the earliest time zone reaches that time.
    """
    if send_at is None or time_zone == "workspace":
        return send_at
    clock = send_at.astimezone(time_zones.first_known(own_zone))
    return clock.replace(tzinfo=_EARLIEST, fold=0).astimezone(UTC)


def write_down(broadcast: Broadcast) -> tuple[int, str | None]:
    """Stores the next contacts as parts; returns how many, and the last one examined or None."""
    scan = Scan(broadcast.workspace_id, broadcast.filter, is_newest_first=False, at=broadcast.started_at)
    found: list[str] = []
    reached = broadcast.reached
    for part in scan.parts(SLICE_SECONDS, reached or None):
        found += part.ids
        reached = part.last_id
    for due_at, contact_ids in _by_time(broadcast, found).items():
        add(broadcast, due_at, contact_ids)
    return len(found), reached


def add(broadcast: Broadcast, due_at: datetime, contact_ids: Sequence[str]) -> None:
    """Stores that the contacts are due at `due_at`, in parts of up to PART."""
    parts = [list(contact_ids[start : start + PART]) for start in range(0, len(contact_ids), PART)]
    for part in parts:
        rows(_ADD, (broadcast.workspace_id, broadcast.id, due_at, part))


def _by_time(broadcast: Broadcast, contact_ids: Sequence[str]) -> Mapping[datetime, list[str]]:
    """Groups the contacts by when they are due, on their own clocks if the broadcast follows these."""
    if broadcast.send_at is None or broadcast.time_zone == "workspace":
        return {broadcast.started_at: list(contact_ids)}
    [(own_zone,)] = rows("SELECT timezone FROM workspaces WHERE id = %s", (broadcast.workspace_id,))
    clock = broadcast.send_at.astimezone(time_zones.first_known(own_zone))
    times: dict[str | None, datetime] = {}
    found: dict[datetime, list[str]] = defaultdict(list)
    zones = "SELECT id, timezone FROM contacts WHERE id = ANY(%s) ORDER BY id"
    for contact_id, zone in rows(zones, (list(contact_ids),)):
        if zone not in times:
            times[zone] = time_zones.instant_of(clock.date(), clock.time(), time_zones.first_known(zone, own_zone))
        found[max(times[zone], broadcast.started_at)].append(contact_id)
    return found


def _left_out(workspace_id: str, contact_ids: Sequence[str], payload: Mapping[str, Any]) -> dict[str, int]:
    has_template = bool(payload.get("message", {}).get("template"))
    found = rows(
        _LEFT_OUT,
        {
            "workspace_id": workspace_id,
            "ids": list(contact_ids),
            "channel_id": payload.get("channel_id"),
            "has_message": "message" in payload,
            "opening": [name for name, kind in CHANNEL_KINDS.items() if kind.may_open],
            "closing": [name for name, kind in CHANNEL_KINDS.items() if kind.window is not None and not has_template],
        },
    )
    return dict(found)


_ADD = """
    INSERT INTO broadcast_parts (workspace_id, broadcast_id, due_at, contact_ids) VALUES (%s, %s, %s, %s::text[])
    RETURNING number
"""
_LEFT_OUT = """
    WITH offered AS (
        SELECT id, kind FROM channels WHERE workspace_id = %(workspace_id)s AND state = 'connected'
            AND deleted_at IS NULL AND (%(channel_id)s::text IS NULL OR id = %(channel_id)s)
    )
    SELECT reason, count(*) FROM (
        SELECT CASE WHEN opted_out THEN 'opted_out'
            WHEN NOT %(has_message)s THEN NULL
            WHEN talk.kind IS NULL AND (phone IS NULL OR opening IS NULL) THEN 'no_channel'
            WHEN coalesce(talk.kind, opening) = ANY(%(closing)s) AND (talk.window_ends_at > now()) IS NOT TRUE
                THEN 'window_closed' END AS reason
        FROM contacts
        LEFT JOIN LATERAL (
            SELECT kind, window_ends_at FROM conversations JOIN offered ON offered.id = channel_id
            WHERE contact_id = contacts.id AND peer IS NOT NULL
            ORDER BY coalesce(last_message_at, conversations.created_at) DESC, conversations.id DESC LIMIT 1
        ) AS talk ON true
        LEFT JOIN (
            SELECT kind AS opening FROM offered WHERE kind = ANY(%(opening)s) ORDER BY id DESC LIMIT 1
        ) AS first ON true
        WHERE contacts.id = ANY(%(ids)s)) AS judged
    WHERE reason IS NOT NULL GROUP BY reason
"""
