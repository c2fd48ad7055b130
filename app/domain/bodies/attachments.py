"""Attachments in request bodies: they name files that are already uploaded."""

from __future__ import annotations

from marshmallow import fields

from app.lib.schemas import RequestBody, about


class AttachmentBody(RequestBody):
    """A file to attach to a message or a saved reply."""

    upload_id = fields.String(
        required=True,
        metadata=about("From `POST uploads`, within a day, once; or a file of a saved reply, any number of times."),
    )
