"""Periods of time, as an address names them."""

from __future__ import annotations

from datetime import timedelta

from flask import request

from app.domain.insight.trends import DEFAULT, WINDOWS, Window
from app.lib import clock
from app.web.lists import address

Preset = tuple[str, str, str, bool]


def chosen() -> Window:
    """The window that the address asks for; the default if it is unknown."""
    return WINDOWS.get(request.args.get("window", ""), DEFAULT)


def links() -> list[tuple[Window, str]]:
    """Every window with the address of this page for it."""
    return [(window, address(window=None if window is DEFAULT else window.name)) for window in WINDOWS.values()]


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
