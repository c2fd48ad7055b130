"""Uploads: reads the files of forms, and stores them for messages and saved replies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flask import request
from werkzeug.datastructures import FileStorage

from app import bounds
from app.domain.channels import media, stored_bytes
from app.errors import Fault, Invalid
from app.lib import ids
from app.models.uploads import Upload
from app.web.access import workspace_id
from app.web.forms import typed_all

# The files of a form may together be as large as one file; the rest is for its other fields.
MOST_FORM_BYTES = media.MOST_BYTES + 256 * 1024


def given(name: str) -> list[FileStorage]:
    """Returns the files in the form's field `name`."""
    return [file for file in request.files.getlist(name) if file.filename]


def kept() -> list[str]:
    """Returns the identifiers of the stored files that are ticked in the form."""
    return [each for each in typed_all("attachments") if ids.is_id(each, "upl")]


def named(upload_ids: Sequence[str]) -> list[Upload]:
    """Returns these uploads, for a form to show; at most twice as many as a message can have."""
    some = upload_ids[: 2 * media.MOST_FILES]
    return list(Upload.in_workspace(workspace_id()).where(Upload.id.in_(some)).order_by(Upload.id)) if some else []


def stored(files: Sequence[FileStorage]) -> list[str]:
    """Stores the files, and returns their identifiers. Raises Invalid, TooMuchStored, Unavailable."""
    if files:
        media.check_room()
    found = []
    for file in files:
        size = file.stream.seek(0, 2)
        file.stream.seek(0)
        allowed = {workspace_id(): bounds.STORED_PER_WORKSPACE}
        try:
            with stored_bytes.taken(size, allowed):
                content = iter(partial(file.stream.read, 65_536), b"")
                found.append(media.store(workspace_id(), file.filename, content).id)
        except Invalid as error:
            raise Invalid(*(Fault("/files", fault.detail) for fault in error.faults)) from error
    return found
