"""Prepares a web chat's look, greeting and opening hours for its script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from app.channels.web_chat import DAYS
from app.lib import time_zones

# The background colors of `app/api/widget/chat.css`, light and dark.
_LIGHT, _DARK = "#ffffff", "#17191f"
# WCAG 2.2, success criterion 1.4.3.
_LEAST_CONTRAST = 4.5
# More than a week, so that a chat that opens once a week always has a span.
_DAYS_AHEAD = 9
# The most spans that the script gets. After the last one, the script no longer says whether anybody is there.
_MOST_SPANS = 8


def facts(settings: Mapping[str, Any], timezone: str, now: datetime) -> dict[str, Any]:
    """Returns the look and greeting for the script, without settings that are not set.

    The keys are `greeting`, `picture`, `look` (CSS rules) and `hours` (spans in minutes since 1970).
    """
    found: dict[str, Any] = {name: settings[name] for name in ("greeting", "picture") if settings.get(name)}
    if color := settings.get("color"):
        found["look"] = (
            f".chat{{--accent:{_readable(color, _LIGHT)}}}"
            f"@media (prefers-color-scheme:dark){{.chat{{--accent:{_readable(color, _DARK)}}}}}"
        )
    if any((settings.get("opening_hours") or {}).values()):
        spans = opening_hours(settings["opening_hours"], timezone, now)
        found["hours"] = [[int(moment.timestamp()) // 60 for moment in span] for span in spans[:_MOST_SPANS]]
    return found


def opening_hours(
    week: Mapping[str, Sequence[Mapping[str, str]]], timezone: str, now: datetime
) -> list[tuple[datetime, datetime]]:
    """Returns the spans of time in which the chat is open, in order, for at least a week.

    Leaves out spans that are over at `now`. Spans that meet or overlap are joined. `week` is `{"monday": [{"from":
    "09:00", "to": "17:30"}]}`, in the time zone. A span that ends no later than it begins ends on the next day. Times
    that the clock skips or shows twice count as in `time_zones.instant_of`.
    """
    joined: list[tuple[datetime, datetime]] = []
    for begins, ends in sorted(_spans(week, timezone, now)):
        if joined and begins <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(ends, joined[-1][1]))
        elif begins < ends:
            joined.append((begins, ends))
    return [span for span in joined if span[1] > now]


def _spans(
    week: Mapping[str, Sequence[Mapping[str, str]]], timezone: str, now: datetime
) -> Iterator[tuple[datetime, datetime]]:
    zone = time_zones.first_known(timezone)
    # A span of yesterday may last until today.
    first = now.astimezone(zone).date() - timedelta(days=1)
    for day in (first + timedelta(days=number) for number in range(_DAYS_AHEAD + 1)):
        for span in week.get(DAYS[day.weekday()], ()):
            begins, ends = time.fromisoformat(span["from"]), time.fromisoformat(span["to"])
            last = day + timedelta(days=ends <= begins)
            yield time_zones.instant_of(day, begins, zone), time_zones.instant_of(last, ends.replace(fold=1), zone)


def _readable(color: str, paper: str) -> str:
    """Returns the color, made just dark or light enough to be readable as text on `paper`."""
    end = 0 if paper == _LIGHT else 255
    for share in range(0, 101, 2):
        mixed = [round(each + (end - each) * share / 100) for each in bytes.fromhex(color[1:])]
        if _contrast(mixed, bytes.fromhex(paper[1:])) >= _LEAST_CONTRAST:
            break
    return "#" + bytes(mixed).hex()


def _contrast(one: Sequence[int], other: Sequence[int]) -> float:
    """Returns the contrast ratio of WCAG 2.2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(channels: Sequence[int]) -> float:
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in (c / 255 for c in channels)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
