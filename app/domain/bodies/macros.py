"""The bodies that create, change and apply macros."""

from __future__ import annotations

from marshmallow import fields, validate

from app.domain.macros import macros
from app.lib import normalization
from app.lib.schemas import Formatted, RequestBody, about


class MacroPatch(RequestBody):
    """The fields of a macro to change. None is required."""

    name = Formatted(
        normalization.name,
        metadata=about("For people; it need not be unique.", **normalization.NAME_SCHEMA, example="Refund"),
    )
    actions = fields.List(
        fields.Dict(metadata={"$ref": "#/components/schemas/Action"}),
        validate=validate.Length(1, macros.MOST_ACTIONS),
        metadata=about("Taken in this order.", example=macros.EXAMPLE),
    )


class MacroCreate(MacroPatch):
    REQUIRED = ("name", "actions")


class MacroUse(RequestBody):
    """The body that applies a macro. If `member_id` is given, on behalf of that member."""

    member_id = fields.String(
        metadata=about("On behalf of whom: `member` in its templates, and `me` of the action `assign`.")
    )
