"""Reports: how much was written in the inbox, and how fast people answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.people import message_access
from app.domain.reports import reports
from app.domain.reports.periods import Period
from app.domain.reports.reports import Report
from app.web import lists
from app.web.access import page, workspace_id
from app.web.formats import number
from app.web.reports import ranges, report_charts, tables
from app.web.reports.report_charts import spelled

blueprint = Blueprint("report_pages", __name__, url_prefix="/workspaces/<workspace>/reports")


@dataclass(frozen=True, slots=True)
class Card:
    """A figure at the top. `further`: a detail; `change`: compared with the previous period, or None."""

    label: str
    value: str
    further: str
    change: str | None


@blueprint.get("")
@page(message_access.SEE)
def show() -> str | Response:
    """Shows the report for the days in the address, or sends one of its tables as a file."""
    chosen = ranges.asked_for()
    if lists.wanted_format():
        return _file(chosen.period)
    measure, dimension = _one_of("count", report_charts.OF_WEEK), _one_of("by", tables.DIMENSIONS)
    report = reports.read(workspace_id(), chosen.period)
    return render_template(
        "reports/show.html",
        chosen=chosen,
        report=report,
        cards=_cards(report),
        charts=report_charts.over_time(report),
        week=report_charts.week(reports.of_week(workspace_id(), chosen.period), measure),
        week_choices=report_charts.OF_WEEK,
        measure=measure,
        table=tables.by(dimension, chosen.period),
        dimensions=tables.DIMENSIONS,
        address=lists.address,
        spelled=spelled,
    )


def _file(period: Period) -> Response:
    """Sends the table `table`: by hour of the week, or by the dimension `by`; otherwise over time."""
    days = f"{period.first}-{period.last}"
    asked = request.args.get("table")
    if asked == "week":
        return lists.file_of(lambda: tables.file_of_week(reports.of_week(workspace_id(), period)), f"week-{days}")
    if asked == "by":
        dimension = _one_of("by", tables.DIMENSIONS)
        return lists.file_of(lambda: tables.file_by(tables.by(dimension, period)), f"{dimension}s-{days}")
    return lists.file_of(lambda: tables.file_over_time(reports.read(workspace_id(), period)), f"report-{days}")


def _one_of(name: str, choices: dict[str, str]) -> str:
    """Returns the choice that the query parameter `name` makes; the first one by default."""
    asked = request.args.get(name, "")
    return asked if asked in choices else next(iter(choices))


def _cards(report: Report) -> Sequence[Card]:
    counts = report.total.counts
    return (
        _count_card("Messages in", "received", "from contacts", report),
        _count_card("Messages out", "sent", f"by people; {number(counts['sent_by_programs'])} by programs", report),
        _count_card("Conversations opened", "opened", f"{number(counts['reopened'])} of them again", report),
        _count_card("Conversations closed", "closed", f"{number(counts['answered'])} first answers", report),
        _duration_card("First answer", "answer_time", report),
        _duration_card("Resolution", "resolution_time", report),
    )


def _count_card(label: str, name: str, further: str, report: Report) -> Card:
    total, before = report.total.counts[name], report.before.counts[name] if report.before else None
    return Card(label, number(total), further, _change(total, before, ("more", "less")))


def _duration_card(label: str, name: str, report: Report) -> Card:
    median, before = report.total.seconds(name, 0.5), report.before.seconds(name, 0.5) if report.before else None
    further = "no figures" if median is None else f"median; 90 % within {spelled(report.total.seconds(name, 0.9))}"
    return Card(label, spelled(median), further, _change(median, before, ("slower", "faster")))


def _change(now: float | None, before: float | None, words: tuple[str, str]) -> str | None:
    """Describes the change from the previous period; None if there is nothing to compare."""
    if before is None or now is None:
        return None
    if not before:
        return "none before" if now else "none before either"
    percent = round(100 * (now - before) / before)
    return f"{abs(percent):,} % {words[0] if percent > 0 else words[1]} than before" if percent else "as before"
