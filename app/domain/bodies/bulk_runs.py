"""Requests that cancel or move many runs of an automation, and their responses."""

from __future__ import annotations

from marshmallow import fields, validate

from app.domain.automations import automations
from app.lib.schemas import Period, RequestBody, ResponseBody, StrictBoolean, StrictInteger, about, time_field
from app.models.runs import UNFINISHED


class MoveRunsBody(RequestBody):
    """Moves unfinished runs of `from_version` to the published version, or counts them (`dry_run`)."""

    WIDENS = True
    from_version = StrictInteger(
        required=True, validate=validate.Range(1, 999_999_999), metadata=about("The version that they have.", example=1)
    )
    dry_run = StrictBoolean(metadata=about("Only count the runs that would be moved."))


def _automation_or(about_counts: str, **examples: int) -> fields.Raw:
    """Returns a field for the automation or the counts of a dry run. `examples`: one for each count."""
    counts = {
        "type": "object",
        "description": about_counts,
        "required": list(examples),
        "properties": {name: {"type": "integer", "example": example} for name, example in examples.items()},
    }
    return fields.Raw(metadata={"anyOf": [{"$ref": "#/components/schemas/Automation"}, counts]})


class MovedRunsSchema(ResponseBody):
    """The result of a write that moves runs: the automation, or the counts of a dry run."""

    data = _automation_or("How many unfinished runs a dry run would move, and how many not.", count=12, kept=3)


class CancelRunsBody(Period):
    """Selects the unfinished runs that match all given fields; without fields, all of them."""

    contact_id = fields.String()
    status = fields.String(validate=validate.OneOf(UNFINISHED))
    since = time_field("created at this time or later.")
    until = time_field("created before this time.")
    dry_run = StrictBoolean(metadata=about("Only count the runs that would be cancelled."))


class CancelledRunsSchema(ResponseBody):
    """The result of a write that cancels runs: the automation, or the count of a dry run."""

    data = _automation_or(f"How many runs a dry run would cancel, up to {automations.MOST_COUNTED:,}.", count=12)
