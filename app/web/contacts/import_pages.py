"""Imports: a file of contacts, its progress, and what is wrong with its lines."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import IO, Any

from flask import Blueprint, render_template, request

from app.domain.lifecycle import import_lines, import_tables, imports
from app.domain.lifecycle.import_lines import MOST_BYTES, MOST_LINES, Lines
from app.errors import Conflict, Fault, Invalid
from app.lib import ids
from app.models.imports import Import, LineError
from app.models.jobs import Job
from app.web import lists, writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, errors_of
from app.web.redirects import to

blueprint = Blueprint("import_pages", __name__, url_prefix="/workspaces/<workspace>/contacts")

MOST_RECENT = 10
_BOM = b"\xef\xbb\xbf"


@blueprint.get("/import")
@page("contacts.import")
def new() -> str:
    """The form that takes a file, and the imports before."""
    return _form({})


@blueprint.post("/import")
@page("contacts.import", most_bytes=2 * MOST_BYTES)  # a file that is too large gets a sentence at its field
def create() -> Answer:
    """Accepts the file as one job, and leads to its progress."""
    try:
        job = _accept(_file())
    except Invalid as error:
        # Whatever is wrong with the file as a whole belongs to its field.
        return _form({"file": next(iter(errors_of(error).values()))}), 422
    except Conflict as error:
        return _form({"file": error.detail}), 409
    return to("import_pages.show", import_id=job.resource_id)


@blueprint.get("/imports/<import_id>")
@page("contacts.import")
def show(import_id: str) -> Answer:
    """How far the import is, and its bad lines; these as a file, too."""
    found = Import.find(workspace_id(), import_id)
    if lists.wanted_format():
        errors = LineError.of(found.id, None, lists.MOST_EXPORTED)
        return lists.file_of([row for error in errors for row in _faults(error)], f"{found.id}-errors")
    return render_template(
        "contacts/import.html",
        found=imports.represent(found),
        page=lists.sliced(partial(_errors, found.id), key=lambda error: str(error.number)),
        faults=_faults,
        address=lists.address,
    )


def _file() -> IO[bytes]:
    found = request.files.get("file")
    if found is None or not found.filename:
        raise Invalid(Fault("/file", "Choose a file."))
    return found.stream


def _accept(file: IO[bytes]) -> Job:
    size = file.seek(0, 2)
    if size > MOST_BYTES:
        raise Invalid(Fault("/file", f"The file is larger than {MOST_BYTES // 1024**2} MiB. Split it."))
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]
    with import_lines.memory_for(size):
        good, bad = _read(file)
        import_id = ids.new("imp")
        store = partial(imports.store, workspace_id(), import_id, good=good, bad=bad)
        return writes.begin("contacts.import", import_id, store, digest)


def _read(file: IO[bytes]) -> Lines:
    """JSON lines begin with an object; anything else is a table."""
    file.seek(0)
    begins_with = file.read(len(_BOM))
    after_bom = len(_BOM) if begins_with == _BOM else 0
    file.seek(after_bom)
    first = file.read(1024).lstrip()[:1]
    if first == b"[":
        raise Invalid(Fault("/file", "This is a list in JSON. Write one object a line, without a list around them."))
    file.seek(after_bom)
    return import_lines.read(file) if first == b"{" else import_tables.read(file)


def _errors(import_id: str, after: str | None, limit: int) -> list[LineError]:
    is_number = after is not None and after.isascii() and after.isdigit() and len(after) < 10
    return LineError.of(import_id, after if is_number else None, limit)


def _faults(error: LineError) -> list[dict[str, Any]]:
    """The line's faults, each with the field that it is about."""
    problem = error.problem
    faults = problem.get("errors") or [{"pointer": "", "detail": problem.get("detail", problem.get("title", ""))}]
    return [
        {"line": error.number, "field": fault["pointer"].removeprefix("/"), "detail": fault["detail"]}
        for fault in faults
    ]


def _form(errors: dict[str, str]) -> str:
    return render_template(
        "contacts/new_import.html",
        errors=errors,
        most_lines=MOST_LINES,
        most_mib=MOST_BYTES // 1024**2,
        columns=import_tables.PLAIN,
        recent=Job.newest(workspace_id(), ["contacts.import"], None, None, MOST_RECENT),
    )
