"""Formats durations of seconds to weeks for reports."""

from __future__ import annotations

from app.web.formats import NOTHING

# The units of charts, with the longest duration in seconds for which each is used.
_UNITS = ((180, "seconds", 1), (3 * 3_600, "minutes", 60), (4 * 86_400, "hours", 3_600), (float("inf"), "days", 86_400))


def spelled(seconds: float | None) -> str:
    """Writes a duration in its two largest units: 45 s, 3 min 20 s, 2 d 3 h; None as an en dash."""
    if seconds is None:
        return NOTHING
    whole = round(seconds)
    parts = ((whole // 86_400, "d"), (whole // 3_600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    first = next((place for place, (number, _) in enumerate(parts) if number), len(parts) - 1)
    shown = [f"{number} {unit}" for number, unit in parts[first : first + 2] if number]
    return " ".join(shown) or "under 1 s"


def unit_for(longest: float) -> tuple[str, int]:
    """Returns the unit for durations up to `longest` seconds, and its length in seconds."""
    return next((name, seconds) for limit, name, seconds in _UNITS if longest <= limit)
