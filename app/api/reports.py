"""Reports: what happened in the inbox, by days in a time zone."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from app.api.authentication import caller
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, reads
from app.domain.people import workspaces
from app.domain.reports import periods, report_schemas
from app.domain.reports.openings import DIMENSIONS
from app.domain.reports.report_schemas import ConversationReportSchema
from app.lib import normalization
from app.lib.schemas import Formatted, Query, about
from app.lib.time_zones import first_known

blueprint = Blueprint("reports", __name__, description="What happened in the inbox.")


def _day(description: str, example: str) -> Formatted:
    return Formatted(periods.day, metadata=about(description, format="date", example=example))


class ReportQuery(Query):
    first_day = _day(f"The first day; {periods.USUAL_DAYS} days up to the last one without it.", "2026-11-01")
    last_day = _day("The last day; today without it.", "2026-11-30")
    time_zone = Formatted(
        normalization.timezone,
        metadata=about(
            "A name in the IANA time zone database; that of the workspace without it.",
            format="timezone",
            example="Europe/Berlin",
        ),
    )
    by = fields.String(validate=validate.OneOf(DIMENSIONS), metadata=about("Adds the figures by this."))


@reads(blueprint, "/reports/conversations", "inbox", ConversationReportSchema, ReportQuery)
def report_conversations(query: dict[str, Any]) -> Document:
    """Report on messages and conversations: how many, and how long answers took.

    Covers up to 366 days. Its cost does not grow with the number of messages. Events are counted within
    about ten seconds.
    """
    workspace_id = caller().workspace_id
    zone = first_known(query.get("time_zone") or workspaces.find(workspace_id).timezone)
    period = periods.chosen(query.get("first_day"), query.get("last_day"), zone)
    return report_schemas.represent(workspace_id, period, query.get("by"))
