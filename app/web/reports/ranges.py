"""Ranges: the days and the time zone of a report, from the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from app.domain.people import workspaces
from app.domain.reports import periods
from app.domain.reports.periods import Period
from app.errors import Invalid
from app.lib import clock
from app.lib.time_zones import first_known
from app.web import filters
from app.web.access import workspace_id
from app.web.forms import errors_of
from app.web.lists import address

_DAY = timedelta(days=1)
Days = tuple[date, date]


def _until_today(days: int) -> Callable[[date], Days]:
    return lambda today: (today - (days - 1) * _DAY, today)


def _last_month(today: date) -> Days:
    last = today.replace(day=1) - _DAY
    return last.replace(day=1), last


# The presets' titles, and functions that return their days for a given today.
PRESETS: Mapping[str, tuple[str, Callable[[date], Days]]] = {
    "today": ("Today", _until_today(1)),
    "yesterday": ("Yesterday", lambda today: (today - _DAY, today - _DAY)),
    "7d": ("7 days", _until_today(7)),
    "30d": ("30 days", _until_today(30)),
    "90d": ("90 days", _until_today(90)),
    "month": ("This month", lambda today: (today.replace(day=1), today)),
    "last-month": ("Last month", _last_month),
}
DEFAULT = "30d"


@dataclass(frozen=True, slots=True)
class Range:
    """The range in the address. `preset`: None for custom days. `zones`: (name, label) to choose."""

    period: Period
    preset: str | None
    zones: Sequence[tuple[str, str]]
    errors: Mapping[str, str]

    @property
    def links(self) -> list[tuple[str, str, bool]]:
        """Returns (title, address of the report, whether it is chosen) for each preset."""
        own = {"first_day": None, "last_day": None}
        return [
            (title, address(**own, range=None if name == DEFAULT else name), name == self.preset)
            for name, (title, _) in PRESETS.items()
        ]

    @property
    def zone_field(self) -> str:
        """The time zone as the form's value; "" is the workspace's."""
        return self.period.zone.key if self.period.zone.key != self.zones[0][1] else ""


def asked_for() -> Range:
    """Reads custom days or a preset from the address. Ignores invalid values; `errors` says why."""
    read = {"range": filters.one_of(PRESETS), "first_day": periods.day, "last_day": periods.day, "zone": _zone}
    chosen = filters.read(read)
    own_zone = workspaces.find(workspace_id()).timezone
    zone = chosen.values.get("zone") or first_known(own_zone)
    errors = dict(chosen.errors)
    first, last = chosen.values.get("first_day"), chosen.values.get("last_day")
    preset = None if first or last else chosen.values.get("range", DEFAULT)
    try:
        period = _period(preset, first, last, zone)
    except Invalid as error:
        errors |= errors_of(error)
        preset = DEFAULT
        period = _period(preset, None, None, zone)
    names = dict.fromkeys(("UTC", zone.key))
    return Range(period, preset, [("", own_zone), *((name, name) for name in names if name != own_zone)], errors)


def _period(preset: str | None, first: date | None, last: date | None, zone: ZoneInfo) -> Period:
    if preset is None:
        return periods.chosen(first, last, zone)
    return Period(*PRESETS[preset][1](clock.now().astimezone(zone).date()), zone)


def _zone(text: str) -> ZoneInfo:
    found = first_known(text)
    if found.key != text:
        raise ValueError("There is no such time zone, so that of the workspace is used.")
    return found
