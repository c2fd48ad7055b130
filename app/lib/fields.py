"""Types of fields."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields, validate

# Text that PostgreSQL can store, as JSON Schema describes it.
STORABLE_TEXT = r"^[^\u0000]*$"
# Times that PostgreSQL, and everything that reads from it, can represent in any time zone.
STORABLE = validate.Range(datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))


class StrictBoolean(fields.Boolean):
    """true or false; nothing else that Python treats as a boolean, such as 1."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class StrictInteger(fields.Integer):
    """An integer as JSON Schema defines it: 7 and 7.0, but neither 7.5 nor "7"."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        is_integer = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if not is_integer or isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return int(value)


class Whole(fields.Integer):
    """A whole number in a query: ASCII digits only, unlike Python's int()."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if not (value.isascii() and value.isdigit()):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, *args, **options)


class Time(fields.AwareDateTime):
    """A time with its zone (RFC 3339), converted to UTC. A time that UTC's calendar cannot represent is invalid."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> datetime:
        text = value.upper() if isinstance(value, str) else value  # RFC 3339, section 5.6, allows small `t` and `z`
        try:
            return super()._deserialize(text, *args, **options).astimezone(UTC)
        except OverflowError as error:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from error


class Formatted(fields.String):
    """Text that `read` validates and normalises; a ValueError of `read` becomes the field's error."""

    def __init__(self, read: Callable[[str], Any], **options: Any) -> None:
        super().__init__(**options)
        self._read = read

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        try:
            return self._read(super()._deserialize(value, *args, **options))
        except ValueError as error:
            raise ValidationError(str(error)) from error


def text(longest: int, shortest: int = 0, **options: Any) -> fields.String:
    """Nullable text of `shortest` to `longest` characters."""
    return fields.String(validate=validate.Length(shortest, longest), allow_none=True, **options)


def time(description: str, **options: Any) -> fields.DateTime:
    """A time in a response: RFC 3339 in UTC with milliseconds."""
    return fields.DateTime(metadata={"description": description}, **options)
