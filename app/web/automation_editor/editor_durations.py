"""Durations in words, as the editor's forms show and read them: "2 days", "1 hour 30 minutes"."""

from __future__ import annotations

import re

_UNITS = (("week", 604_800), ("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
# Other spellings of the units.
_SHORT = {
    "w": "week",
    "d": "day",
    "h": "hour",
    "hr": "hour",
    "m": "minute",
    "min": "minute",
    "s": "second",
    "sec": "second",
}
_SIZES = dict(_UNITS) | {short: dict(_UNITS)[name] for short, name in _SHORT.items()}
_PART = re.compile(r"\s*(?:,|and\b)?\s*(\d{1,9})\s*([a-z]+)\.?\s*", re.ASCII)
_UNKNOWN = "Write how long in words, such as “2 days” or “1 hour 30 minutes”."


def words(seconds: int) -> str:
    """Writes a duration in words, without rounding: `90061` is 1 day 1 hour 1 minute 1 second."""
    left, parts = seconds, []
    for name, size in _UNITS[1:]:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {name}{'' if number == 1 else 's'}")
    return " ".join(parts) or "0 seconds"


def read(text: str) -> int:
    """Reads a duration in words as seconds. Raises ValueError, with a sentence for the user."""
    given, at, seconds = text.strip().lower(), 0, 0
    while at < len(given):
        found = _PART.match(given, at)
        size = found and _SIZES.get(found[2], _SIZES.get(found[2].removesuffix("s")))
        if found is None or size is None:
            raise ValueError(_UNKNOWN)
        at, seconds = found.end(), seconds + int(found[1]) * size
    if not given:
        raise ValueError(_UNKNOWN)
    return seconds
