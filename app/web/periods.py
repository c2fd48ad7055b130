"""Periods of time that the query string of a page asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from flask import request

from app.domain.insight import trends
from app.domain.insight.trends import DEFAULT, WINDOWS, Window
from app.lib import clock
from app.lib.json import timestamp
from app.web import filters
from app.web.lists import address

Preset = tuple[str, str, str, bool]
Fetch = Callable[[str | None, int], Sequence[Any]]
# The filters that limit a list to a range of time.
FILTERS = {"since": filters.Filter("From", filters.time), "until": filters.Filter("Before", filters.time)}


@dataclass(frozen=True, slots=True)
class Range:
    """The time that a page covers: a `window` that ends at `until` (None: now).

    `at`: a time in the window's last step. `asked`: the parameters `since` and `until` as given.
    """

    window: Window
    at: datetime
    until: datetime | None
    asked: filters.Filters
    errors: Mapping[str, str]


def chosen() -> Window:
    """Returns the window named by the `window` parameter; DEFAULT if there is no such window."""
    return WINDOWS.get(request.args.get("window", ""), DEFAULT)


def links() -> list[tuple[Window, str]]:
    """Returns every window, with the address of this page for it."""
    others: dict[str, str | None] = {"since": None, "until": None, "preset": None}
    return [
        (window, address(window=None if window is DEFAULT else window.name, **others)) for window in WINDOWS.values()
    ]


def chosen_range() -> Range:
    """Returns the range of the parameters `since` and `until`; without either, the `chosen` window.

    `since` alone means up to now, and `until` alone the day before it. If either is invalid, both are ignored, and
    `errors` says why.
    """
    asked = filters.read(FILTERS)
    since, until = asked.values.get("since"), asked.values.get("until")
    errors, now = dict(asked.errors), clock.now()
    if since and since >= (until or now):
        errors["since"] = "This must be before the end. This filter is left out."
    if errors or not (since or until):
        return Range(chosen(), now, None, asked, errors)
    ends = until or now
    window, at = trends.between(since or ends - timedelta(days=1), ends)
    return Range(window, at, ends, asked, errors)


def presets(*names: str) -> list[Preset]:
    """Returns (name, label, address of this page, whether it is chosen) for common ranges of time.

    Without names, all of them. Days are UTC days; the script replaces them with days in the reader's time zone.
    """
    now = clock.now()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    ranges = {
        "hour": ("Last hour", now - timedelta(hours=1), None),
        "today": ("Today", today, None),
        "yesterday": ("Yesterday", today - day, today),
        "week": ("Last 7 days", now - 7 * day, None),
    }
    return [
        (
            name,
            label,
            address(since=timestamp(since), until=timestamp(until) if until else None, preset=name, window=None),
            request.args.get("preset") == name,
        )
        for name, (label, since, until) in ranges.items()
        if not names or name in names
    ]


def ranged(
    fetch: Fetch,
    values: Mapping[str, Any],
    bound: Callable[[datetime], str],
    key: Callable[[Any], str] = attrgetter("id"),
) -> Fetch:
    """Wraps `fetch`, newest first, to return only rows from `since` on and before `until`.

    Without either in `values`, all rows. `bound` returns the lowest `key` that a row of that time can have. The list is
    ordered by `key`, so reading starts at the bound, as from a cursor, and a range costs no more than the whole list.
    """
    first = bound(values["since"]) if "since" in values else ""
    end = bound(values["until"]) if "until" in values else None

    def fetch_range(after: str | None, limit: int) -> Sequence[Any]:
        cursor = min(each for each in (after, end) if each) if after or end else None
        return [row for row in fetch(cursor, limit) if key(row) >= first]

    return fetch_range
