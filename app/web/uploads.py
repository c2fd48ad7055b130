"""Uploads: reads the files of forms, and stores them for messages and saved replies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flask import request
from werkzeug.datastructures import FileStorage

from app import bounds
from app.domain.channels import media, stored_bytes
from app.errors import Fault, Invalid
from app.web.access import workspace_id

# The files of a form may together be as large as one file; the rest is for its other fields.
MOST_FORM_BYTES = media.MOST_BYTES + 256 * 1024


def given(name: str) -> list[FileStorage]:
    """Returns the files in the form's field `name`."""
    return [file for file in request.files.getlist(name) if file.filename]


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
