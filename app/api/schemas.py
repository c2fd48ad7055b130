"""The base classes of schemas of queries and responses: each says what its schemas describe."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, ValidationError, pre_load

from app.lib.base_schemas import Schema

EMPTY = "Leave it out, or give a value."


class Query(Schema):
    """The query parameters of a request. One that is there without a value is an error, not a filter for nothing."""

    @pre_load
    def refuse_empty(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Raises ValidationError for every known parameter that is empty."""
        if empty := [name for name, value in data.items() if value == "" and name in self.load_fields]:
            raise ValidationError({name: [EMPTY] for name in empty})
        return data


class ResponseBody(Schema):
    """The JSON object in a response, or an object inside it. Responses are not validated against it.

    Members may be added to it at any time, and values to its enumerations.
    """

    class Meta:
        unknown = EXCLUDE
