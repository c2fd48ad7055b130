"""Quiet hours: when automations send nothing, in the contact's local time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from app.database import rows
from app.domain.work.units import Busy, Unit
from app.lib import time_zones
from app.models.contacts import Contact

_DAY = timedelta(days=1)
_FIND = "SELECT quiet_hours, timezone FROM workspaces WHERE id = %s"
_KEEP = f"{_FIND} FOR SHARE SKIP LOCKED"


def end_for(unit: Unit, contact: Contact) -> datetime | None:
    """Returns when the contact's current quiet hours end; None outside of quiet hours.

    During quiet hours, locks the workspace until the transaction ends, so that a later change of the hours finds the
    runs that wait for their end. Raises Busy.
    """
    found = unit.noted(("quiet hours", contact.workspace_id), lambda: rows(_FIND, (contact.workspace_id,)))
    ends = _end(unit, contact, found)
    if ends is None:
        return None
    kept = unit.noted(("quiet hours kept", contact.workspace_id), lambda: rows(_KEEP, (contact.workspace_id,)))
    if not kept:
        raise Busy
    return _end(unit, contact, kept)


def end(at: datetime, hours: Mapping[str, str], *timezones: str | None) -> datetime | None:
    """Returns when the quiet hours around `at` end; None if `at` is outside of them.

    `hours` are `{"from": "21:00", "to": "08:00"}`; if both are equal, there are no quiet hours. Both follow the local
    time of the first time zone that exists, or UTC. A local time that is skipped counts as in RFC 5545 (3.3.5). If a
    local time occurs twice, the hours begin at the first and end at the second.
    """
    begins, ends = time.fromisoformat(hours["from"]), time.fromisoformat(hours["to"])
    if begins == ends:
        return None
    zone = time_zones.first_known(*timezones)
    today = at.astimezone(zone).date()
    for day in (today - _DAY, today):
        first = time_zones.moment(day, begins, zone)
        last = max(time_zones.moment(day + _DAY * (ends < begins), ends.replace(fold=fold), zone) for fold in (0, 1))
        if first <= at < last:
            return last
    return None


def _end(unit: Unit, contact: Contact, found: Sequence[Any]) -> datetime | None:
    [(hours, timezone)] = found
    return end(unit.now, hours, contact.timezone, timezone) if hours else None
