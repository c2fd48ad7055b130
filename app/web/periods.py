"""Periods of time, as an address names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from flask import request

from app.domain.insight import trends
from app.domain.insight.trends import DEFAULT, WINDOWS, Window
from app.lib import clock, time_zones
from app.web import filters
from app.web.lists import address

Preset = tuple[str, str, str, bool]


@dataclass(frozen=True, slots=True)
class Range:
    """A window and a time in its last step; `until` is when it ends, None: now. The rest is for the form.

    `moments`: each time, None where there is none, and as its field has it.
    """

    window: Window
    at: datetime
    until: datetime | None
    zone: ZoneInfo
    moments: Mapping[str, tuple[datetime | None, str]]
    errors: Mapping[str, str]


def chosen() -> Window:
    """The window that the address asks for; the default if it is unknown."""
    return WINDOWS.get(request.args.get("window", ""), DEFAULT)


def links() -> list[tuple[Window, str]]:
    """Every window with the address of this page for it."""
    others: dict[str, str | None] = {"since": None, "until": None, "zone": None}
    return [
        (window, address(window=None if window is DEFAULT else window.name, **others)) for window in WINDOWS.values()
    ]


def chosen_range() -> Range:
    """The range that the address asks for with `since` and `until`; without them, the window that it asks for.

    One of them alone begins or ends a day. What makes no sense is left out, and `errors` says so.
    """
    zone = time_zones.first_known(request.args.get("zone"))

    def time(text: str) -> datetime:
        return filters.time(text, zone)

    asked = filters.read({"since": time, "until": time})
    since, until = asked.values.get("since"), asked.values.get("until")
    errors, now = dict(asked.errors), clock.now()
    moments = {
        name: (asked.values.get(name), _typed(asked.values.get(name), zone) or asked.given.get(name, ""))
        for name in ("since", "until")
    }
    if since and since >= (until or now):
        errors["since"] = "This must be before the end. This filter is left out."
    if errors or not (since or until):
        return Range(chosen(), now, None, zone, moments, errors)
    ends = until or now
    window, at = trends.between(since or ends - timedelta(days=1), ends)
    return Range(window, at, ends, zone, moments, errors)


def _typed(moment: datetime | None, zone: ZoneInfo) -> str:
    return filters.local_time(moment, zone)


def presets() -> list[Preset]:
    """Ranges of time that lists are asked for: name, label, the address of this page for it, whether it is chosen.

    Days are those of UTC here; the script makes them the reader's.
    """
    now = clock.now()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    ranges = (
        ("hour", "Last hour", now - timedelta(hours=1), None),
        ("today", "Today", today, None),
        ("yesterday", "Yesterday", today - day, today),
        ("week", "Last 7 days", now - 7 * day, None),
    )
    return [
        (
            name,
            label,
            address(since=since.isoformat(), until=until.isoformat() if until else None, preset=name),
            request.args.get("preset") == name,
        )
        for name, label, since, until in ranges
    ]
