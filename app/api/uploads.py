"""Uploads: files for messages that will be sent later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from flask import Response, request
from marshmallow import fields, validate
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app import bounds
from app.api.authentication import authorize, caller
from app.api.lists import envelope
from app.api.parsing.blueprints import Blueprint
from app.api.parsing.bodies import spooled_body
from app.api.responses import respond
from app.api.writes import idempotency_key
from app.bounds import Bound
from app.domain.channels import media, stored_bytes
from app.domain.channels.media import UploadSchema
from app.lib.schemas import Query, about

blueprint = Blueprint("uploads", __name__, description="Files for messages.")

_PART_BYTES = 65_536


class UploadQuery(Query):
    name = fields.String(
        validate=validate.Length(1, media.MOST_NAME), metadata=about("The file's name.", example="receipt.pdf")
    )


@blueprint.route("/workspaces/<workspace>/uploads", methods=["POST"])
@authorize("inbox")
@blueprint.doc(
    requestBody={
        "required": True,
        "description": f"The file, at most {media.MOST_BYTES // 1024**2} MiB. Its type is found from its content.",
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary", "minLength": 1},
                "example": "%PDF-1.7 …",
            }
        },
    }
)
@blueprint.arguments(UploadQuery)
@blueprint.response(201, envelope(UploadSchema))
def upload_file(query: dict[str, Any]) -> Response:
    """Upload a file for a message. The only write without a job: the file exists when this returns."""
    idempotency_key(b"")  # only refuses a malformed key: a repeated upload is stored again, and expires if unused
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")
    workspace_id = caller().workspace_id
    with admitted_file({workspace_id: bounds.STORED_PER_WORKSPACE}) as content:
        stored = media.store(workspace_id, query.get("name"), content)
    return respond(201, {"data": media.represent(stored)})


@contextmanager
def admitted_file(allowed: Mapping[str, Bound]) -> Iterator[Iterator[bytes]]:
    """Yields the request's body in parts, for storing. Takes its size from the bounds.

    Refuses before reading if the disk or an allowance is exhausted. Raises Unavailable, TooMuchStored, and
    RequestEntityTooLarge.
    """
    media.check_room()
    length = request.content_length
    size = media.MOST_BYTES if length is None else min(length, media.MOST_BYTES)
    try:
        with stored_bytes.taken(size, allowed), spooled_body(request, media.MOST_BYTES) as body:
            found = body.tell()
            body.seek(0)
            yield iter(partial(body.read, _PART_BYTES), b"")
        if found < size:  # the length was not announced
            stored_bytes.give_back(size - found, allowed)
    except RequestEntityTooLarge as error:
        raise RequestEntityTooLarge(f"The file is larger than {media.MOST_BYTES // 1024**2} MiB.") from error
