"""Contacts and their tags."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from flask import Response
from marshmallow import ValidationError, fields, post_load, validate, validates_schema

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, collection, envelope, page_of
from app.api.openapi import STORABLE_TEXT
from app.api.parsing import Blueprint, Claim, Schema, Time
from app.api.responses import respond, time
from app.api.writes import accept
from app.domain import contacts, exports
from app.domain.contacts import IDENTIFIERS, MOST_FIELDS, MOST_TAGS
from app.lib import formats
from app.models.contacts import Contact

blueprint = Blueprint("contacts", __name__, description="The people a workspace talks to.")

LONGEST_VALUE = 4096
LARGEST_NUMBER = 2**53  # beyond it JSON's readers disagree, and the database's whole numbers are not ours to write
_CUSTOM_VALUE = [
    {"type": "string", "maxLength": LONGEST_VALUE, "pattern": STORABLE_TEXT, "nullable": True},
    {"type": "number", "minimum": -LARGEST_NUMBER, "maximum": LARGEST_NUMBER},
    {"type": "boolean"},
]
_TAG = r"[^\x00-\x1f\x7f-\x9f]*[^\x00-\x1f\x7f-\x9f\s][^\x00-\x1f\x7f-\x9f]*"


class Formatted(fields.String):
    """Text in one of `app.lib.formats`, kept in its normal form."""

    def __init__(self, read: Callable[[str], Any], **options: Any) -> None:
        super().__init__(**options)
        self._read = read

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        try:
            return self._read(super()._deserialize(value, *args, **options))
        except ValueError as error:
            raise ValidationError(str(error)) from error


class PhoneFilter(Formatted):
    """A phone number in a query, where a plus sign that was not escaped arrives as a space."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        return super()._deserialize("+" + value.strip().lstrip("+"), *args, **options)


class CustomValue(fields.Field[Any]):
    """A string, number, boolean or null."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(value, (str, int, float, bool, type(None))):
            raise ValidationError("A custom field holds a string, number, boolean or null.")
        if isinstance(value, str) and len(value) > LONGEST_VALUE:
            raise ValidationError(f"A custom field holds at most {LONGEST_VALUE} characters.")
        if isinstance(value, (int, float)) and abs(value) > LARGEST_NUMBER:
            raise ValidationError(f"A number of a custom field lies between -{LARGEST_NUMBER} and {LARGEST_NUMBER}.")
        return value


def text(longest: int, shortest: int = 0, **options: Any) -> fields.String:
    return fields.String(validate=validate.Length(shortest, longest), allow_none=True, **options)


def tag_name(**options: Any) -> fields.String:
    """A tag: 1 to 100 characters, none of them a control character and not all of them spaces; those at its ends go."""
    described = {"minLength": 1, "maxLength": 100, "pattern": f"^{_TAG}$", "example": "vip"}
    return Formatted(_read_tag, metadata=described, **options)


def _read_tag(value: str) -> str:
    if len(value) > 100 or not re.fullmatch(_TAG, value):
        raise ValueError("A tag has 1 to 100 characters, no control characters, and more than spaces.")
    return value.strip()


class ContactFields(Schema):
    external_id = text(255, 1, metadata={"description": "Your own identifier of the contact."})
    email = Formatted(formats.email, allow_none=True, metadata={"format": "email", "maxLength": 254})
    phone = Formatted(formats.phone, allow_none=True, metadata={"format": "phone", "description": "E.164."})
    first_name = text(255)
    last_name = text(255)
    locale = Formatted(formats.locale, allow_none=True, metadata={"pattern": f"^{formats.LOCALE.pattern}$"})
    timezone = Formatted(
        formats.timezone,
        allow_none=True,
        metadata={"format": "timezone", "description": "A name of the IANA database."},
    )
    custom_fields = fields.Dict(
        keys=fields.String(validate=validate.Length(1, 100)),
        values=CustomValue(allow_none=True, metadata={"anyOf": _CUSTOM_VALUE}),
        validate=validate.Length(max=MOST_FIELDS),
        metadata={
            "description": "Strings, numbers and booleans by names of 1 to 100 characters; merged with what is there; "
            "null removes one."
        },
    )
    opted_out = Claim(metadata={"description": "Send this contact nothing."})


class ContactUpsert(ContactFields):
    # One identifier that is not null. anyOf would say it more simply, and generated clients would lose the fields.
    described: ClassVar[dict[str, Any]] = {
        "not": {
            "type": "object",
            "properties": {name: {"type": "string", "nullable": True, "enum": [None]} for name in IDENTIFIERS},
        }
    }
    tags = fields.List(
        tag_name(), validate=validate.Length(max=MOST_TAGS), metadata={"description": "Added to those there are."}
    )

    @validates_schema
    def needs_an_identifier(self, data: dict[str, Any], **_: Any) -> None:
        if not any(data.get(name) for name in IDENTIFIERS):
            raise ValidationError(f"Give at least one of {', '.join(IDENTIFIERS)}.")


class ContactPatch(ContactFields):
    tags = fields.List(
        tag_name(), validate=validate.Length(max=MOST_TAGS), metadata={"description": "Replaces those there are."}
    )


class TagBody(Schema):
    name = tag_name(required=True)


class ContactSchema(Schema):
    id = fields.String(required=True)
    external_id = fields.String(required=True, allow_none=True)
    email = fields.String(required=True, allow_none=True)
    phone = fields.String(required=True, allow_none=True)
    first_name = fields.String(required=True, allow_none=True)
    last_name = fields.String(required=True, allow_none=True)
    locale = fields.String(required=True, allow_none=True)
    timezone = fields.String(required=True, allow_none=True)
    tags = fields.List(fields.String(), required=True, metadata={"description": "Sorted."})
    custom_fields = fields.Dict(required=True)
    opted_out = fields.Boolean(required=True)
    created_at = time("When the contact was made.")
    updated_at = time("When it last changed.")


ExportSchema = Schema.from_dict(
    {"contact": fields.Nested(ContactSchema, required=True)}
    | {name: fields.List(fields.Dict(), required=True) for name in exports.SOURCES},
    name="ExportSchema",
)


class ContactQuery(PageQuery):
    email = fields.String(metadata={"description": "In any case."})
    phone = PhoneFilter(formats.phone, metadata={"format": "phone", "description": "E.164."})
    external_id = fields.String()
    tag = fields.String()
    updated_since = Time(metadata={"description": "RFC 3339."})
    q = fields.String(
        validate=validate.Length(2, 100),
        metadata={"description": "Part of a name, e-mail address, phone number or external id."},
    )

    @post_load
    def without_empty(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {name: value for name, value in data.items() if value != "" or name == "cursor"}


@collection(blueprint, "/contacts")
@authorize("contacts")
@blueprint.arguments(ContactQuery, location="query")
@blueprint.response(200, envelope(ContactSchema, many=True))
def list_contacts(query: dict[str, Any]) -> Response:
    """List contacts, newest first."""
    return respond(200, page_of(partial(Contact.newest, caller().workspace_id, query), query, contacts.represent))


@blueprint.route("/workspaces/<workspace>/contacts", methods=["POST"])
@authorize("contacts")
@blueprint.arguments(ContactUpsert)
@accepts_write(ContactSchema, made=True)
def upsert_contact(body: dict[str, Any]) -> Response:
    """Make a contact, or change the one that external_id, email or phone (in that order) finds."""
    return accept("contacts.upsert", body)


@blueprint.route("/workspaces/<workspace>/contacts/<contact_id>", methods=["GET"])
@authorize("contacts")
@blueprint.response(200, envelope(ContactSchema))
def show_contact(contact_id: str) -> Response:
    """Show a contact."""
    return respond(200, {"data": contacts.represent(contacts.find(caller().workspace_id, contact_id))})


@blueprint.route("/workspaces/<workspace>/contacts/<contact_id>/export", methods=["GET"])
@authorize("contacts")
@blueprint.response(
    200,
    envelope(ExportSchema),
    headers={"Content-Disposition": {"schema": {"type": "string"}, "description": "An attachment, and its name."}},
)
def export_contact(contact_id: str) -> Response:
    """Export all that is stored about a contact as one JSON document."""
    contact = contacts.find(caller().workspace_id, contact_id)
    headers = {"Content-Disposition": f'attachment; filename="{contact.id}.json"'}
    return Response(exports.export(contact), headers=headers, mimetype="application/json")


@blueprint.route("/workspaces/<workspace>/contacts/<contact_id>", methods=["PATCH"])
@authorize("contacts")
@blueprint.arguments(ContactPatch)
@accepts_write(ContactSchema)
def update_contact(body: dict[str, Any], contact_id: str) -> Response:
    """Change the fields that are given."""
    return _change("contacts.update", body, contact_id)


@blueprint.route("/workspaces/<workspace>/contacts/<contact_id>", methods=["DELETE"])
@authorize("contacts")
@accepts_write()
def delete_contact(contact_id: str) -> Response:
    """Delete a contact, and erase its personal data everywhere."""
    return _change("contacts.delete", {}, contact_id)


@blueprint.route("/workspaces/<workspace>/contacts/<contact_id>/tags", methods=["POST"])
@authorize("contacts")
@blueprint.arguments(TagBody)
@accepts_write(ContactSchema)
def add_tag(body: dict[str, Any], contact_id: str) -> Response:
    """Add a tag."""
    return _change("contacts.add_tag", body, contact_id)


@blueprint.route(
    "/workspaces/<workspace>/contacts/<contact_id>/tags/<path:name>",
    methods=["DELETE"],
    parameters=[{"name": "name", "in": "path", "description": "The tag.", "example": "vip"}],
)
@authorize("contacts")
@accepts_write(ContactSchema)
def remove_tag(contact_id: str, name: str) -> Response:
    """Remove a tag; nothing happens if the contact does not have it."""
    return _change("contacts.remove_tag", {"name": name}, contact_id)


def _change(kind: str, payload: dict[str, Any], contact_id: str) -> Response:
    workspace_id = caller().workspace_id
    return accept(kind, payload, contact_id, check=lambda: contacts.find(workspace_id, contact_id))
