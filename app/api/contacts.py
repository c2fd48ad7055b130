"""Contacts and their tags."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app import bounds
from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page_of, scanned_page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept
from app.domain.bodies.contacts import ContactPatch, ContactUpsert, MergeBody, TagBody
from app.domain.contacts import contacts
from app.domain.contacts.contacts import ContactSchema
from app.domain.lifecycle import exports
from app.domain.lifecycle.merges import ContactItemSchema
from app.domain.people import message_access
from app.domain.segments import scans, segments
from app.lib import normalization
from app.lib.schemas import Formatted, ResponseBody, Time, about
from app.models.contacts import Contact

blueprint = Blueprint("contacts", __name__, description="The people that a workspace talks to.")


class PhoneFilter(Formatted):
    """A phone number in a query. An unescaped plus sign arrives as a space."""

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        number = value.strip().lstrip("+")
        return super()._deserialize(number if number.startswith("00") else f"+{number}", *args, **options)


def _address(text: str) -> str:
    """Returns the e-mail address in a query, where an unescaped plus sign has become a space."""
    return normalization.bare(text).replace(" ", "+")


def _search(text: str) -> str:
    """Restores plus signs that arrived as spaces, if the text is an e-mail address or a number."""
    is_address = re.fullmatch(r"[^@\s]+( [^@\s]+)+@[^@\s]+", text)
    return text.replace(" ", "+") if is_address or re.fullmatch(r" [0-9]+", text) else text


ExportSchema = ResponseBody.from_dict(
    {"contact": fields.Nested(ContactItemSchema)} | {name: fields.List(fields.Dict()) for name in exports.SOURCES},
    name="ExportSchema",
)


class ContactQuery(PageQuery):
    email = Formatted(_address, metadata=about("Case-insensitive."))
    phone = PhoneFilter(normalization.phone, metadata={"format": "phone", "description": "E.164."})
    external_id = fields.String()
    tag = fields.String()
    updated_since = Time(metadata=about("RFC 3339."))
    q = Formatted(
        _search,
        validate=validate.Length(contacts.SHORTEST_SEARCH, contacts.LONGEST_SEARCH),
        metadata=about("Part of a name, e-mail address, phone number or external_id."),
    )
    segment_id = fields.String(
        metadata=about(
            "Those in the segment now. A page may have fewer than `limit`, even none, while `hasMore` is true."
        )
    )


@reads(blueprint, "/contacts", "contacts", ContactSchema, ContactQuery)
def list_contacts(query: dict[str, Any]) -> Document:
    """List contacts, newest first."""
    workspace_id = caller().workspace_id
    if "segment_id" in query:
        return _of_segment(workspace_id, query)
    return page_of(partial(Contact.newest, workspace_id, query), query, contacts.represent)


@accepts(blueprint, "POST /contacts", "contacts", ContactItemSchema, ContactUpsert, made=True)
def upsert_contact(body: dict[str, Any]) -> Response:
    """Create a contact, or change the one that external_id, email or phone (in that order) matches.

    The first identifier that matches selects the contact. Later identifiers replace the contact's own; earlier ones are
    filled in if the contact has none. If the contact has a different value for an earlier one, or if another contact
    has one of the identifiers, the write fails with `conflict`: `conflicting_field` names the identifier, and
    `conflicting_contact_id` the contact that has it or a different value. An identifier that is "" counts as not given.
    """
    return accept("contacts.upsert", body)


shows(blueprint, "contact", "contacts", ContactItemSchema, "Show a contact.")


@blueprint.route("/workspaces/<workspace>/contacts/<contact_id>/export", methods=["GET"])
@authorize(message_access.EXPORTS)
@blueprint.response(
    200,
    envelope(ExportSchema),
    headers={"Content-Disposition": {"schema": {"type": "string"}, "description": "`attachment`, with a file name."}},
)
def export_contact(contact_id: str) -> Response:
    """Export everything that is stored about a contact as one JSON document."""
    contact = contacts.find(caller().workspace_id, contact_id)
    headers = {"Content-Disposition": f'attachment; filename="{contact.id}.json"'}
    return Response(exports.export(contact), headers=headers, mimetype="application/json")


@accepts(blueprint, "PATCH /contacts/<contact_id>", "contacts", ContactItemSchema, ContactPatch)
def update_contact(body: dict[str, Any], contact_id: str) -> Response:
    """Change the given fields of a contact."""
    return _change("contacts.update", body, contact_id)


@accepts(blueprint, "DELETE /contacts/<contact_id>", "contacts", None)
def delete_contact(contact_id: str) -> Response:
    """Delete a contact, and erase its personal data everywhere."""
    return _change("contacts.delete", {}, contact_id)


@accepts(blueprint, "POST /contacts/<contact_id>/merge", "contacts", ContactItemSchema, MergeBody)
def merge_contact(body: dict[str, Any], contact_id: str) -> Response:
    """Merge another contact into this one: everything moves here, and the other no longer exists.

    Fields that this contact does not have are filled from the other. It is opted out if either was.
    """
    return _change("contacts.merge", body, contact_id)


@accepts(blueprint, "POST /contacts/<contact_id>/tags", "contacts", ContactItemSchema, TagBody)
def add_tag(body: dict[str, Any], contact_id: str) -> Response:
    """Add a tag to a contact."""
    return _change("contacts.add_tag", body, contact_id)


@accepts(
    blueprint,
    "DELETE /contacts/<contact_id>/tags/<path:name>",
    "contacts",
    ContactItemSchema,
    parameters=[{"name": "name", "in": "path", "description": "The tag.", "example": "vip"}],
)
def remove_tag(contact_id: str, name: str) -> Response:
    """Remove a tag from a contact; nothing changes if the contact does not have it."""
    return _change("contacts.remove_tag", {"name": name}, contact_id)


def _of_segment(workspace_id: str, query: dict[str, Any]) -> dict[str, Any]:
    segment = segments.find(workspace_id, query["segment_id"])
    # A cursor is valid only for the filter that it was issued for.
    arguments = {**query, "filter": segment and segment.filter}

    def find(last_id: str | None, limit: int) -> tuple[list[Contact], str | None]:
        return scans.page(workspace_id, segment.filter, query, last_id, limit) if segment else ([], None)

    with bounds.reading_segment(workspace_id):
        return scanned_page(find, arguments, contacts.represent)


def _change(kind: str, payload: dict[str, Any], contact_id: str) -> Response:
    return accept(kind, payload, contact_id, partial(contacts.find, caller().workspace_id, contact_id))
