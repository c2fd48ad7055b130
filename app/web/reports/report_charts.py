"""Charts of reports: messages, conversations and durations over time, and hours of the week."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.reports.reports import Report
from app.web import charts
from app.web.charts import Chart, Series
from app.web.formats import NOTHING, number

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# The measures that the hours of the week can show, with their labels.
OF_WEEK = {
    "received": "Messages in",
    "sent": "Messages out",
    "opened": "Conversations opened",
    "closed": "Conversations closed",
}
# How many shades cells have, besides that of 0.
SHADES = 7
_LABELS = {"hour": "%a %H:%M", "day": "%d %b", "week": "%d %b", "month": "%b %Y"}
# The units of charts, with the longest duration in seconds for which each is used.
_UNITS = ((180, "seconds", 1), (3 * 3_600, "minutes", 60), (4 * 86_400, "hours", 3_600), (float("inf"), "days", 86_400))


@dataclass(frozen=True, slots=True)
class Cell:
    """An hour of the week: the exact number, its short form, and its shade from 0 to SHADES."""

    number: int
    text: str
    shade: int


def over_time(report: Report) -> list[Chart]:
    """Returns four charts: of messages, conversations, first answers and resolutions."""
    return [
        _counts(report, "messages", "Messages", {"from contacts": "received", "written by people": "sent"}),
        _counts(report, "conversations", "Conversations", {"opened": "opened", "closed": "closed"}),
        _durations(report, "answers", "First answer", "answer_time"),
        _durations(report, "resolutions", "Resolution", "resolution_time"),
    ]


def week(found: Mapping[tuple[int, int], Counter[str]], measure: str) -> list[tuple[str, list[Cell]]]:
    """Returns each weekday's name and its 24 hourly cells of `measure`, shaded up to the highest."""
    highest = max((counts[measure] for counts in found.values()), default=0)

    def cell(day: int, hour: int) -> Cell:
        amount = found.get((day, hour), Counter())[measure]
        return Cell(amount, _compact(amount), -(-amount * SHADES // highest) if highest else 0)

    return [(name, [cell(day, hour) for hour in range(24)]) for day, name in enumerate(WEEKDAYS, 1)]


def spelled(seconds: float | None) -> str:
    """Writes a duration in its two largest units: 45 s, 3 min 20 s, 2 d 3 h; None as an en dash."""
    if seconds is None:
        return NOTHING
    whole = round(seconds)
    parts = ((whole // 86_400, "d"), (whole // 3_600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    first = next((place for place, (number, _) in enumerate(parts) if number), len(parts) - 1)
    shown = [f"{number} {unit}" for number, unit in parts[first : first + 2] if number]
    return " ".join(shown) or "under 1 s"


def _counts(report: Report, id: str, title: str, measures: Mapping[str, str]) -> Chart:
    series = [
        Series(name, [figures.counts[measure] for _, figures in report.steps], is_second=place > 0)
        for place, (name, measure) in enumerate(measures.items())
    ]
    return _chart(report, id, f"{title} per {report.period.step}", series)


def _durations(report: Report, id: str, title: str, measure: str) -> Chart:
    shares = {"median": 0.5, "90 %": 0.9}
    values = {name: [figures.seconds(measure, share) for _, figures in report.steps] for name, share in shares.items()}
    longest = max((value for each in values.values() for value in each if value is not None), default=0)
    unit, length = next((name, seconds) for limit, name, seconds in _UNITS if longest <= limit)
    series = [
        Series(name, [None if value is None else value / length for value in each], is_second=name != "median")
        for name, each in values.items()
    ]
    return _chart(report, id, f"{title}, in {unit}", series)


def _chart(report: Report, id: str, title: str, series: Sequence[Series]) -> Chart:
    starts, zone = [start for start, _ in report.steps], report.period.zone
    labels = [start.astimezone(zone).strftime(_LABELS[report.period.step]) for start in starts]
    return charts.chart(id, title, starts, series, _shown, labels, zone.key)


def _shown(value: float | None) -> str:
    if value is None:
        return NOTHING
    return number(round(value)) if value == round(value) else f"{value:,.1f}"


def _compact(amount: int) -> str:
    if amount < 1_000:
        return str(amount)
    divided, unit = (amount / 1_000, "k") if amount < 1_000_000 else (amount / 1_000_000, "M")
    return f"{divided:.1f}{unit}" if divided < 10 else f"{divided:.0f}{unit}"
