"""The base classes of schemas: what callers send, and what they get."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import marshmallow
from marshmallow import EXCLUDE, RAISE, ValidationError, missing, pre_load

EMPTY = "Leave it out, or give a value."
_MESSAGES = {"unknown": "Unknown field.", "type": "A JSON object is required."}


class Schema(marshmallow.Schema):
    """What all schemas share: unknown fields are errors. No field may have a `data_key`."""

    error_messages = _MESSAGES

    class Meta:
        unknown = RAISE

    def _deserialize(self, data: Any, **options: Any) -> Any:
        """The same result as marshmallow's, without preparing for errors; if there are any, marshmallow reports them.

        Fields that are neither given nor required cost nothing (decision 18).
        """
        known = self.load_fields
        if isinstance(data, dict) and data.keys() <= known.keys() and not (options["many"] or options["partial"]):
            with suppress(ValidationError):
                values = {
                    name: field.deserialize(data.get(name, missing), name, data)
                    for name, field in known.items()
                    if name in data or field.required or field.load_default is not missing
                }
                return {name: value for name, value in values.items() if value is not missing}
        return super()._deserialize(data, **options)


class RequestBody(Schema):
    """The JSON object in a request, or an object inside it."""


class Query(Schema):
    """The query parameters of a request. One that is there without a value is an error, not a filter for nothing."""

    @pre_load
    def refuse_empty(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Raises ValidationError for every known parameter that is empty."""
        if empty := [name for name, value in data.items() if value == "" and name in self.load_fields]:
            raise ValidationError({name: [EMPTY] for name in empty})
        return data


class ResponseBody(Schema):
    """The JSON object in a response, or an object inside it, with all of its members except the OPTIONAL ones.

    Responses are not validated against it. Members may be added to it at any time, and values to its enumerations.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = ()

    class Meta:
        unknown = EXCLUDE

    @classmethod
    def of(cls, row: Any, **members: Any) -> dict[str, Any]:
        """The object for a row: the given members, and for all others the row's columns of their names.

        OPTIONAL members are in it if they are given.
        """
        return {
            name: members[name] if name in members else getattr(row, name)
            for name in cls._declared_fields
            if name in members or name not in cls.OPTIONAL
        }

    def on_bind_field(self, field_name: str, field_obj: marshmallow.fields.Field[Any]) -> None:
        """Documents the member as one that is always there."""
        field_obj.required = field_name not in self.OPTIONAL
