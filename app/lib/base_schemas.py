"""The base classes of schemas that read what callers send."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import marshmallow
from marshmallow import RAISE, ValidationError, missing

_MESSAGES = {"unknown": "Unknown field.", "type": "A JSON object is required."}


class Schema(marshmallow.Schema):
    """The base of all schemas: unknown fields are errors. No field may have a `data_key`."""

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
