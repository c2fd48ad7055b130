"""Start times of broadcasts as users type them: in the workspace's time zone."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from app.domain.people import workspaces
from app.errors import Fault, Invalid
from app.lib import time_zones
from app.web import filters
from app.web.access import workspace_id

_UNKNOWN = "Give a time such as 2026-11-21T10:00."


def zone() -> ZoneInfo:
    """Returns the workspace's time zone; UTC if it has none."""
    return time_zones.first_known(workspaces.find(workspace_id()).timezone)


def read(text: str) -> datetime:
    """Reads a typed time in the workspace's time zone. Raises Invalid."""
    try:
        typed = datetime.fromisoformat(text)
        moment = typed if typed.tzinfo else time_zones.moment(typed.date(), typed.time(), zone())
        return filters.time(moment.isoformat())
    except (ValueError, OverflowError):
        raise Invalid(Fault("/send_at", _UNKNOWN)) from None


def typed(moment: datetime) -> str:
    """Writes the moment for an input, in the workspace's time zone."""
    return moment.astimezone(zone()).replace(tzinfo=None).isoformat(timespec="minutes")
