"""Tables of reports: over time, by hour of the week, and by channel, member or label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any

from flask import request, url_for

from app.domain.people import members
from app.domain.reports import reports
from app.domain.reports.openings import COUNTS, COUNTS_OF
from app.domain.reports.periods import Period
from app.domain.reports.reports import Figures, Report
from app.models.channels import Channel
from app.web.access import workspace_id
from app.web.lists import address
from app.web.reports.report_charts import OF_WEEK, WEEKDAYS

DIMENSIONS = {"channel": "Channels", "member": "Members", "label": "Labels"}
_COUNTS = {
    "received": "Messages in",
    "sent": "Messages out",
    "sent_by_programs": "By programs",
    "opened": "Opened",
    "reopened": "Reopened",
    "answered": "First answers",
    "closed": "Closed",
}
_DURATIONS = (
    ("first_answer_median_seconds", "First answer, median", "answer_time", 0.5),
    ("first_answer_p90_seconds", "First answer, 90 %", "answer_time", 0.9),
    ("resolution_median_seconds", "Resolution, median", "resolution_time", 0.5),
    ("resolution_p90_seconds", "Resolution, 90 %", "resolution_time", 0.9),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A figure: its name in files, its label, and how to get it. Durations are in seconds."""

    name: str
    label: str
    value: Callable[[Figures], float | None]
    is_duration: bool = False

    @property
    def address(self) -> str:
        """The address that sorts by this column: descending, or ascending if it already is descending."""
        return address(sort=f"{self.name}-up" if self.sorted_by == "descending" else self.name)

    @property
    def sorted_by(self) -> str | None:
        """The value of `aria-sort` if the address sorts by this column; otherwise None."""
        asked = request.args.get("sort", "")
        return {self.name: "descending", f"{self.name}-up": "ascending"}.get(asked)


@dataclass(frozen=True, slots=True)
class Row:
    """A value of the dimension: its identifier or label, its name, and its figures.

    `link`: the inbox with the value's conversations, or None.
    """

    value: str
    name: str
    link: str | None
    figures: Figures


@dataclass(frozen=True, slots=True)
class Table:
    """The figures by a dimension. `others`: the sum of values without a row; None if there are none."""

    dimension: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    others: Figures | None


def columns_of(dimension: str | None = None) -> list[Column]:
    """Returns the columns of the table by `dimension`, or of the table over time if it is None."""
    counts = COUNTS_OF.get(dimension or "", COUNTS)
    return [
        *(Column(name, _COUNTS[name], partial(_count, name)) for name in counts),
        *(Column(name, label, methodcaller("seconds", of, share), True) for name, label, of, share in _DURATIONS),
    ]


def by(dimension: str, period: Period) -> Table:
    """Returns the period's table by the dimension, sorted as the address asks, or by activity."""
    found, others = reports.by(workspace_id(), dimension, period)
    names, columns = _names(dimension, list(found)), columns_of(dimension)
    rows = [Row(value, names[value], _link(dimension, value), figures) for value, figures in found.items()]
    if column := next((each for each in columns if each.sorted_by), None):
        rows = _sorted(rows, column)
    return Table(dimension, columns, rows, others)


def file_by(table: Table) -> list[dict[str, Any]]:
    """Returns the table as rows of a file, with the sum of the others last."""
    listed = [(row.value, row.name, row.figures) for row in table.rows]
    if table.others:
        listed.append(("", "Others", table.others))
    named = [
        {"label": name} if table.dimension == "label" else {"id": value, table.dimension: name}
        for value, name, _ in listed
    ]
    return [first | _cells(table.columns, each) for first, (_, _, each) in zip(named, listed, strict=True)]


def file_over_time(report: Report) -> list[dict[str, Any]]:
    """Returns the figures of each step as rows of a file."""
    zone = report.period.zone
    return [
        {"from": start.astimezone(zone).isoformat()} | _cells(columns_of(), figures) for start, figures in report.steps
    ]


def file_of_week(found: Mapping[tuple[int, int], Counter[str]]) -> list[dict[str, Any]]:
    """Returns the hours of the week as rows of a file."""
    return [
        {"weekday": name, "hour": hour} | {measure: found.get((day, hour), Counter())[measure] for measure in OF_WEEK}
        for day, name in enumerate(WEEKDAYS, 1)
        for hour in range(24)
    ]


def _cells(columns: Sequence[Column], figures: Figures) -> dict[str, Any]:
    values = {column.name: column.value(figures) for column in columns}
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in values.items()}


def _sorted(rows: Sequence[Row], column: Column) -> list[Row]:
    """Sorts the rows by the column. Rows without a value come last."""
    known = [row for row in rows if column.value(row.figures) is not None]
    known.sort(key=lambda row: column.value(row.figures) or 0, reverse=column.sorted_by == "descending")
    return [*known, *(row for row in rows if column.value(row.figures) is None)]


def _names(dimension: str, values: Sequence[str]) -> Mapping[str, str]:
    names: dict[str, str] = {}
    if dimension == "channel":
        found = Channel.select(Channel.id, Channel.name, Channel.deleted_at).where(
            Channel.id.in_(values), Channel.workspace_id == workspace_id()
        )
        names = {each.id: f"{each.name} (deleted)" if each.deleted_at else each.name for each in found}
    elif dimension == "member":
        names = {person.member_id: person.email for person in members.of_workspace(workspace_id())}
    return {value: names.get(value, "Removed member" if dimension == "member" else value) for value in values}


def _link(dimension: str, value: str) -> str | None:
    """Returns the inbox address of a channel's or label's conversations; None for a member."""
    if dimension == "member":
        return None
    part: dict[str, Any] = {"channel_id" if dimension == "channel" else "label": value}
    return url_for("inbox_pages.index", workspace=workspace_id(), **part)


def _count(name: str, figures: Figures) -> float:
    return figures.counts[name]
