"""The bodies that create, change and apply macros."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from app.domain.macros import macros
from app.lib import normalization
from app.lib.schemas import Formatted, RequestBody, about


class MacroFields(RequestBody):
    """The fields of a macro: both are required to create one, and optional in a change."""

    name = Formatted(
        normalization.name,
        metadata=about("For people; it need not be unique.", **normalization.NAME_SCHEMA, example="Refund"),
    )
    actions = fields.List(
        fields.Dict(metadata={"$ref": "#/components/schemas/Action"}),
        validate=validate.Length(1, macros.MOST_ACTIONS),
        metadata=about("Taken in this order.", example=macros.EXAMPLE),
    )


class MacroCreate(MacroFields):
    """A macro to create. Both fields are required."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Makes `name` and `actions` required, which MacroFields leaves optional."""
        field_obj.required = True


class MacroPatch(MacroFields):
    """The fields of a macro to change. None is required."""


class MacroUse(RequestBody):
    """The body that applies a macro. If `member_id` is given, on behalf of that member."""

    member_id = fields.String(
        metadata=about("On behalf of whom: `member` in its templates, and `me` of the action `assign`.")
    )
