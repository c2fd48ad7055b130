"""The bodies that create and change contacts."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, fields, post_load, validate, validates, validates_schema

from app.domain.contacts.contacts import IDENTIFIERS, MOST_FIELDS, MOST_TAGS
from app.lib import ids, normalization
from app.lib.schemas import STORABLE_TEXT, Formatted, RequestBody, StrictBoolean, about, text

_CUSTOM_VALUE = [
    {"type": ["string", "null"], "maxLength": normalization.LONGEST_VALUE, "pattern": STORABLE_TEXT},
    {"type": "number", "minimum": -normalization.LARGEST_NUMBER, "maximum": normalization.LARGEST_NUMBER},
    {"type": "boolean"},
]


class CustomValue(fields.Field[Any]):
    """A string, number, boolean or null."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        try:
            return normalization.custom_value(value)
        except ValueError as error:
            raise ValidationError(str(error)) from error


def tag_name(**options: Any) -> fields.String:
    """Returns the field for a tag, stripped: 1 to 100 characters, no control characters, not blank."""
    described = {"minLength": 1, "maxLength": 100, "pattern": f"^{normalization.TAG}$", "example": "vip"}
    return Formatted(normalization.tag, metadata=described, **options)


class ContactFields(RequestBody):
    """The fields of a contact that callers can set."""

    external_id = Formatted(
        normalization.bare,
        validate=validate.Length(1, 255),
        allow_none=True,
        metadata=about("Your own identifier of the contact. Spaces at its ends are removed."),
    )
    email = Formatted(normalization.email, allow_none=True, metadata={"format": "email", "maxLength": 254})
    phone = Formatted(normalization.phone, allow_none=True, metadata={"format": "phone", "description": "E.164."})
    first_name = text(255)
    last_name = text(255)
    locale = Formatted(normalization.locale, allow_none=True, metadata={"pattern": f"^{normalization.LOCALE.pattern}$"})
    timezone = Formatted(
        normalization.timezone,
        allow_none=True,
        metadata={"format": "timezone", "description": "A name in the IANA time zone database."},
    )
    custom_fields = fields.Dict(
        keys=fields.String(validate=validate.Length(1, 100)),
        values=CustomValue(allow_none=True, metadata={"anyOf": _CUSTOM_VALUE}),
        validate=validate.Length(max=MOST_FIELDS),
        metadata=about(
            "Strings, numbers and booleans by names of 1 to 100 characters. They are merged with the "
            'existing fields; null removes a field, and "" leaves it as it is.'
        ),
    )
    opted_out = StrictBoolean(metadata=about("Send nothing to this contact."))

    @post_load
    def without_empty_custom_fields(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Drops custom fields that are "": like other empty fields, they count as not given."""
        if "" not in (given := data.get("custom_fields", {})).values():
            return data
        return data | {"custom_fields": {name: value for name, value in given.items() if value != ""}}


class ContactUpsert(ContactFields):
    """A contact to create, or to change if one of its identifiers is known. `tags` are added."""

    # Requires at least one identifier. With the simpler anyOf, generated clients would lose the fields.
    described: ClassVar[dict[str, Any]] = {
        "not": {"type": "object", "properties": {name: {"enum": [None, ""]} for name in IDENTIFIERS}}
    }
    tags = fields.List(
        tag_name(), validate=validate.Length(max=MOST_TAGS), metadata=about("Added to the existing tags.")
    )

    @validates_schema
    def needs_an_identifier(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError unless an identifier is given that is neither null nor ""."""
        if not any(data.get(name) for name in IDENTIFIERS):
            raise ValidationError(f"Give at least one of {', '.join(IDENTIFIERS)}.")


class ImportedContact(ContactUpsert):
    """A contact in an imported file. `id`, from an exported file, finds the contact again."""

    id = fields.String()

    @validates("id")
    def is_of_a_contact(self, value: str, **_: Any) -> None:
        """Raises ValidationError if the value cannot be the identifier of a contact."""
        if not ids.is_id(value, "con"):
            raise ValidationError("This is not the ID of a contact, which begins with con_.")

    @validates_schema
    def needs_an_identifier(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError if there is neither `id` nor another identifier."""
        if "id" not in data:
            super().needs_an_identifier(data)


class ContactPatch(ContactFields):
    """The fields of a contact to change. `tags` replace the existing ones."""

    tags = fields.List(
        tag_name(), validate=validate.Length(max=MOST_TAGS), metadata=about("Replaces the existing tags.")
    )


class TagBody(RequestBody):
    name = tag_name(required=True)


class MergeBody(RequestBody):
    contact_id = fields.String(required=True, metadata=about("The contact that becomes a part of this one."))
