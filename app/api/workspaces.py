"""The workspace: its name, time zone, quiet hours and opt-out words."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import ValidationError, fields, validate, validates_schema

from app.api.authentication import caller
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads
from app.api.writes import accept
from app.domain.people import workspaces
from app.domain.people.tokens import UNRESTRICTED
from app.domain.people.workspaces import (
    EXAMPLE_WORDS,
    MOST_OPT_OUT_WORDS,
    OPT_OUT_WORDS,
    QUIET_HOURS,
    WorkspaceSettingsSchema,
)
from app.lib import normalization
from app.lib.schemas import Formatted, RequestBody, about

blueprint = Blueprint("workspaces", __name__, description="The workspace that a token belongs to.")

_CLOCK = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


def _clock(description: str, example: str) -> fields.String:
    return fields.String(
        required=True,
        validate=validate.Regexp(_CLOCK[:-1] + r"\Z", error='Give a time of day such as "21:00".'),
        metadata=about(description, pattern=_CLOCK, example=example),
    )


class _Hours(RequestBody):
    """Hours of the day, which may span midnight."""

    @validates_schema
    def are_not_empty(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError if the hours end when they begin."""
        if data["from"] == data["to"]:
            raise ValidationError("This must differ from `from`.", "to")


# A dict, because `from` is a keyword of Python.
_HOURS = {"from": _clock("When they begin.", "21:00"), "to": _clock("When they end.", "08:00")}
QuietHours = _Hours.from_dict(_HOURS, name="QuietHours")  # type: ignore[arg-type]


class WorkspacePatch(RequestBody):
    """The fields of the workspace to change. None is required."""

    name = Formatted(normalization.name, metadata={**normalization.NAME_SCHEMA, "example": "Demo"})
    timezone = Formatted(
        normalization.timezone, metadata={"format": "timezone", "description": "A name in the IANA time zone database."}
    )
    quiet_hours = fields.Nested(QuietHours, allow_none=True, metadata=about(f"{QUIET_HOURS} null: there are none."))
    opt_out_words = fields.List(
        Formatted(
            normalization.opt_out_word, metadata={"minLength": 1, "maxLength": 50, "pattern": f"^{normalization.TAG}$"}
        ),
        allow_none=True,
        validate=validate.Length(max=MOST_OPT_OUT_WORDS),
        metadata=about(f"{OPT_OUT_WORDS} null: the built-in words.", example=EXAMPLE_WORDS),
    )


@reads(blueprint, "", UNRESTRICTED, WorkspaceSettingsSchema)
def show_workspace() -> Document:
    """Show the workspace."""
    return workspaces.represent(workspaces.find(caller().workspace_id))


@accepts(blueprint, "PATCH", UNRESTRICTED, WorkspaceSettingsSchema, WorkspacePatch)
def update_workspace(body: dict[str, Any]) -> Response:
    """Change the given fields of the workspace."""
    return accept("workspaces.update", body, caller().workspace_id)
