"""Exports: everything stored about a contact, as a file."""

from __future__ import annotations

from flask import Blueprint, Response

from app.domain.contacts import contacts
from app.domain.lifecycle import exports
from app.domain.people import message_access
from app.web.access import page, workspace_id

blueprint = Blueprint("export_pages", __name__, url_prefix="/workspaces/<workspace>/contacts")


@blueprint.get("/<contact_id>/export")
@page(message_access.EXPORT)
def show(contact_id: str) -> Response:
    """Streams everything that is stored about the contact, as a JSON file."""
    contact = contacts.find(workspace_id(), contact_id)
    headers = {"Content-Disposition": f'attachment; filename="{contact.id}.json"'}
    return Response(exports.export(contact), headers=headers, mimetype="application/json")
