"""Base classes and field types for the schemas of requests and responses."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

import marshmallow
from marshmallow import EXCLUDE, RAISE, ValidationError, fields, missing, pre_load, validate, validates_schema

from app.lib.nearest_names import meant

# Text that PostgreSQL can store, as a pattern of JSON Schema.
STORABLE_TEXT = r"^[^\u0000]*$"
# The characters that `str.strip` removes, for use inside brackets, and a pattern for a text of only these. Other
# languages' `\s` matches fewer characters.
SPACES = r"\s\x1c-\x1f\x85"
BLANK = f"^[{SPACES}]*$"
NOT_BLANK = rf"^[^\u0000]*[^\u0000{SPACES}][^\u0000]*$"
# Times that PostgreSQL, and everything that reads from it, can represent in any time zone.
STORABLE = validate.Range(datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
EMPTY = "Leave it out, or give a value."
UNKNOWN = "Unknown field."
_MESSAGES = {"unknown": UNKNOWN, "type": "A JSON object is required."}
_EMPTY: tuple[Any, ...] = ("", [""])


class Schema(marshmallow.Schema):
    """The base of all schemas: unknown fields are errors. No field may have a `data_key`."""

    error_messages = _MESSAGES

    class Meta:
        unknown = RAISE

    def _deserialize(self, data: Any, **options: Any) -> Any:
        """Loads like marshmallow, but faster, and without cost for absent optional fields (decision 18)."""
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
    """The JSON object in a request, or an object inside it.

    Converts all text to NFC. An optional field that is "" or [""] counts as not given, because forms and no-code
    platforms send all their fields. If WIDENS is set, such a field counts as given: there, leaving a field out makes
    the write affect more. REQUIRED are inherited fields that are optional in the base class.
    """

    WIDENS: ClassVar[bool] = False
    REQUIRED: ClassVar[tuple[str, ...]] = ()

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Makes the REQUIRED fields required. marshmallow calls this for each field."""
        field_obj.required = field_obj.required or field_name in self.REQUIRED

    def _deserialize(self, data: Any, **options: Any) -> Any:
        data = composed(data)
        if isinstance(data, dict) and not self.WIDENS and any(value in _EMPTY for value in data.values()):
            is_optional = {name for name, field in self.load_fields.items() if not field.required}
            data = {name: value for name, value in data.items() if name not in is_optional or value not in _EMPTY}
        return super()._deserialize(data, **options)


class Period(RequestBody):
    """A body with `since` and `until`. Either may be left out."""

    WIDENS = True

    @validates_schema
    def begins_before_it_ends(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError unless `until` is later than `since`."""
        if "since" in data and "until" in data and data["since"] >= data["until"]:
            raise ValidationError("This must be after since.", "until")

    @staticmethod
    def as_text(body: dict[str, Any]) -> dict[str, Any]:
        """Returns the loaded body with its times as text that, unlike JSON's form, keeps microseconds."""
        return body | {name: body[name].isoformat() for name in body.keys() & {"since", "until"}}


class Query(Schema):
    """The query parameters of a request. A known parameter without a value is an error."""

    @pre_load
    def compose(self, data: dict[str, Any], **_: Any) -> Any:
        """Converts the parameters to NFC, like the stored text that they are compared with."""
        return composed(data)

    @pre_load
    def refuse_empty(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Raises ValidationError for every known parameter that is empty."""
        if empty := [name for name, value in data.items() if value == "" and name in self.load_fields]:
            raise ValidationError({name: [EMPTY] for name in empty})
        return data


class ResponseBody(Schema):
    """The JSON object in a response, or an object inside it.

    All members except OPTIONAL ones are always present. Responses are not validated against the schema. Members, and
    values of enumerations, may be added at any time.
    """

    OPTIONAL: ClassVar[tuple[str, ...]] = ()

    class Meta:
        unknown = EXCLUDE

    @classmethod
    def of(cls, row: Any, **members: Any) -> dict[str, Any]:
        """Returns the object for a row; `members` replace its columns. Omits OPTIONAL ones not given."""
        return {
            name: members[name] if name in members else getattr(row, name)
            for name in cls._declared_fields
            if name in members or name not in cls.OPTIONAL
        }

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Documents the member as required, unless it is OPTIONAL."""
        field_obj.required = field_name not in self.OPTIONAL


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
    """A time with its zone (RFC 3339), converted to UTC. Years outside 1 to 9999 in UTC are invalid."""

    default_error_messages: dict[str, str | list[Any] | dict[Any, Any]] = {  # noqa: RUF012, as marshmallow has it
        "invalid": "Give a time such as 2026-11-21T10:00:00Z (RFC 3339).",
        "invalid_awareness": "Give the time with its zone, such as 2026-11-21T10:00:00Z or 2026-11-21T11:00:00+01:00.",
    }

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> datetime:
        text = value.upper() if isinstance(value, str) else value  # RFC 3339, section 5.6, allows small `t` and `z`
        try:
            return super()._deserialize(text, *args, **options).astimezone(UTC)
        except OverflowError as error:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from error


class OneOf(validate.OneOf):
    """Requires one of the choices. The error names the nearest one."""

    def __call__(self, value: Any) -> Any:
        """Returns the value. Raises ValidationError if it is not a choice."""
        try:
            return super().__call__(value)
        except ValidationError as error:
            raise ValidationError(f"{error.messages[0]}{meant(value, self.choices)}") from error


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


def composed(value: Any) -> Any:
    """Returns the JSON value with all text in NFC, so that letters with accents have one encoding."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [composed(each) for each in value]
    if isinstance(value, dict):
        return {composed(name): composed(each) for name, each in value.items()}
    return value


def about(description: str, **further: Any) -> dict[str, Any]:
    """Returns the metadata of a field: `description`, and perhaps further members of its schema."""
    return {"description": description, **further}


def text(longest: int, shortest: int = 0, **options: Any) -> fields.String:
    """Nullable text of `shortest` to `longest` characters."""
    return fields.String(validate=validate.Length(shortest, longest), allow_none=True, **options)


def time(description: str, **options: Any) -> fields.DateTime:
    """A time in a response: RFC 3339 in UTC with milliseconds."""
    return fields.DateTime(metadata=about(description), **options)


def time_field(description: str, **options: Any) -> Time:
    """A time in a request, within STORABLE."""
    return Time(validate=STORABLE, metadata=about(f"RFC 3339; {description}"), **options)
