"""Reports as the API shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from app.domain.reports import reports
from app.domain.reports.openings import COUNTS, COUNTS_OF, DIMENSIONS
from app.domain.reports.periods import Period
from app.domain.reports.reports import OF_WEEK, Figures
from app.lib.schemas import ResponseBody, about, time


class DurationsSchema(ResponseBody):
    median = fields.Float(
        allow_none=True, metadata=about("In seconds: half of them took no longer; null: none.", example=312.4)
    )
    p90 = fields.Float(
        allow_none=True, metadata=about("In seconds: 90 % of them took no longer; null: none.", example=2840.7)
    )


def _count(description: str, example: int) -> fields.Integer:
    return fields.Integer(metadata=about(description, example=example))


class ReportFiguresSchema(ResponseBody):
    OPTIONAL = ("received", "sent_by_programs", "opened", "reopened")

    received = _count("Messages of contacts; not of members.", 420)
    sent = _count("Messages that people have written, and that were sent.", 310)
    sent_by_programs = _count("Messages of automations and the API that were sent; not of members.", 150)
    opened = _count("How often a conversation began or was opened again; only of channels and of all.", 130)
    reopened = _count("Of these, how often one was opened again; only of channels and of all.", 12)
    answered = _count("How often a contact was first answered by a person.", 118)
    closed = _count("How often a conversation was closed.", 125)
    first_answer = fields.Nested(
        DurationsSchema, metadata=about("From the contact's first message to the first answer by a person.")
    )
    resolution = fields.Nested(DurationsSchema, metadata=about("From opening to closing."))


class ReportStepSchema(ReportFiguresSchema):
    starts_at = time("When it begins; it ends where the next one begins.")


class ReportHourSchema(ResponseBody):
    weekday = _count("From 1, Monday, to 7.", 1)
    hour = _count("From 0 to 23, in the report's time zone.", 9)
    received = _count("As in `total`, like those below.", 12)
    sent = fields.Integer()
    opened = fields.Integer()
    closed = fields.Integer()


class ReportGroupSchema(ReportFiguresSchema):
    value = fields.String(metadata=about("A channel, a member or a label.", example="refund"))


class ConversationReportSchema(ResponseBody):
    first_day = fields.String(metadata=about("The first day.", example="2026-11-01"))
    last_day = fields.String(metadata=about("The last day.", example="2026-11-30"))
    time_zone = fields.String(metadata=about("In which days and hours are meant.", example="Europe/Berlin"))
    figures_since = time("From when on this installation has figures; null: none have been counted.", allow_none=True)
    total = fields.Nested(ReportFiguresSchema, metadata=about("The figures of all days."))
    before = fields.Nested(
        ReportFiguresSchema,
        allow_none=True,
        metadata=about("Those of as many days before; null: figures do not reach back so far."),
    )
    step = fields.String(
        metadata=about("How long each of `steps` is: `hour`, `day`, `week` or `month`.", example="day")
    )
    steps = fields.List(fields.Nested(ReportStepSchema), metadata=about("The figures over time."))
    hours_of_week = fields.List(
        fields.Nested(ReportHourSchema), metadata=about("The hours in which anything happened.")
    )
    groups = fields.List(
        fields.Nested(ReportGroupSchema),
        allow_none=True,
        metadata=about(
            f"The figures by what was asked for, the most active first; {reports.MOST_SHOWN} at most. null: not asked."
        ),
    )
    others = fields.Nested(
        ReportFiguresSchema, allow_none=True, metadata=about("The sum of all that have no group; null: there are none.")
    )


def represent(workspace_id: str, period: Period, dimension: str | None) -> dict[str, Any]:
    """Returns the report as the API shows it. `dimension`: one of DIMENSIONS, or None for no groups."""
    assert dimension is None or dimension in DIMENSIONS
    report, week = reports.read(workspace_id, period), reports.of_week(workspace_id, period)
    groups, others = reports.by(workspace_id, dimension, period) if dimension else (None, None)
    return {
        "first_day": period.first.isoformat(),
        "last_day": period.last.isoformat(),
        "time_zone": period.zone.key,
        "figures_since": report.since,
        "total": _figures(report.total),
        "before": report.before and _figures(report.before),
        "step": period.step,
        "steps": [{"starts_at": starts_at, **_figures(figures)} for starts_at, figures in report.steps],
        "hours_of_week": [
            {"weekday": day, "hour": hour, **{name: counts[name] for name in OF_WEEK}}
            for (day, hour), counts in sorted(week.items())
        ],
        "groups": None
        if groups is None
        else [{"value": value, **_figures(figures, dimension)} for value, figures in groups.items()],
        "others": others and _figures(others, dimension),
    }


def _figures(figures: Figures, dimension: str | None = None) -> dict[str, Any]:
    counts = COUNTS_OF.get(dimension or "", COUNTS)
    durations = {"first_answer": "answer_time", "resolution": "resolution_time"}
    return {
        **{name: figures.counts[name] for name in counts},
        **{name: _durations(figures, measure) for name, measure in durations.items()},
    }


def _durations(figures: Figures, measure: str) -> dict[str, float | None]:
    found = {"median": figures.seconds(measure, 0.5), "p90": figures.seconds(measure, 0.9)}
    return {name: None if seconds is None else round(seconds, 1) for name, seconds in found.items()}
