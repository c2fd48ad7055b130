"""Imports: many contacts as JSON lines, in one job."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app import bounds
from app.api.authentication import caller
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.parsing.bodies import spooled_body
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import answer, idempotency_key, write_of
from app.domain import writes
from app.domain.channels import media
from app.domain.lifecycle import import_lines, imports
from app.domain.lifecycle.import_lines import LONGEST_LINE_BYTES, MOST_BYTES, MOST_LINES, memory_for
from app.domain.lifecycle.imports import ImportSchema, LineErrorSchema
from app.lib import ids
from app.models.imports import Import, LineError
from app.models.jobs import Job

blueprint = Blueprint("imports", __name__, description="Many contacts in one job.")

MEDIA_TYPES = ("application/x-ndjson", "application/jsonl")

_EXAMPLE = '{"email": "ada@example.com", "tags": ["vip"]}\n{"external_id": "customer-1042", "first_name": "Ada"}\n'


@accepts(blueprint, "POST /contacts/import", "contacts", ImportSchema, made=True)
@blueprint.doc(
    requestBody={
        "required": True,
        "description": f"Up to {MOST_LINES:,} contacts, each a line of JSON like the body of `POST contacts`; at most "
        f"{MOST_BYTES // 1024**2} MiB, and {LONGEST_LINE_BYTES // 1024} KiB a line. Empty lines count and do nothing.",
        "content": {
            kind: {"schema": {"type": "string", "pattern": r"\S"}, "example": _EXAMPLE} for kind in MEDIA_TYPES
        },
    }
)
def import_contacts() -> Response:
    """Create or change many contacts in one job.

    A bad line gets its own error; the other lines are imported.
    """
    return answer(*_accept())


shows(blueprint, "import", "contacts", ImportSchema, "Show an import and its progress.")


@reads(blueprint, "/imports/<import_id>/errors", "contacts", LineErrorSchema, PageQuery)
def list_line_errors(query: dict[str, Any], import_id: str) -> Document:
    """List the lines of an import that failed, in order."""
    found = Import.find(caller().workspace_id, import_id)
    return page_of(partial(LineError.of, found.id), query, imports.represent_error, order=["number"])


def _accept() -> tuple[Job, bool]:
    """Accepts the import, and frees the body's memory.

    Returns its job, and whether it was a repeat.
    """
    _refuse_other_types()
    try:
        media.check_room()
        with (
            spooled_body(request, MOST_BYTES) as body,
            bounds.reading_import(caller().workspace_id),
            memory_for(body.tell()),
        ):
            body.seek(0)
            key, import_id = idempotency_key(body.read()), ids.new("imp")
            body.seek(0)
            store = partial(imports.store, caller().workspace_id, import_id, lines=import_lines.read(body))
            return writes.accept(write_of("contacts.import", {}, import_id), key, store)
    except RequestEntityTooLarge as error:
        raise RequestEntityTooLarge(f"The body is larger than {MOST_BYTES // 1024**2} MiB.") from error


def _refuse_other_types() -> None:
    if request.mimetype not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"The body must be JSON lines: send it with 'Content-Type: {MEDIA_TYPES[0]}'.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")
