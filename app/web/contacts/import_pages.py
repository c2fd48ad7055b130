"""Imports: uploading a file of contacts, its progress, and its faulty lines."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import IO, Any

from flask import Blueprint, Response, render_template, request

from app import bounds
from app.domain.lifecycle import import_columns, import_lines, import_tables, import_texts, imports
from app.domain.lifecycle.import_columns import Column, Mapping
from app.domain.lifecycle.import_lines import MOST_BYTES, MOST_LINES
from app.domain.lifecycle.imports import Lines
from app.domain.people import workspaces
from app.errors import Conflict, Fault, Invalid
from app.lib import countries, ids
from app.models.imports import Import, LineError
from app.models.jobs import Job
from app.web import lists, writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, errors_of, sentence_of, typed, typed_all
from app.web.redirects import to

blueprint = Blueprint("import_pages", __name__, url_prefix="/workspaces/<workspace>/contacts")

MOST_RECENT = 10
_LABELS = {
    "": "do not import",
    "external_id": "external ID",
    "email": "e-mail",
    "name": "full name",
    "locale": "language",
    "timezone": "time zone",
    "opted_out": "opted out (true or false)",
    "custom_field": "custom field of this name",
    "custom_fields": "custom fields in JSON",
    "id": "ID of a contact here",
}
_TARGETS = [(target, _LABELS.get(target, target.replace("_", " "))) for target in import_columns.TARGETS]


@blueprint.get("/import")
@page("contacts.import")
def new() -> str:
    """Shows the form that takes a file, and earlier imports."""
    return _form({})


@blueprint.post("/import")
# A larger limit than the file's, so that a file that is too large gets an error at its field.
@page("contacts.import", most_bytes=2 * MOST_BYTES)
def create() -> Answer:
    """Accepts the file as one job, and redirects to its progress.

    With `look`, only shows the file's columns. If the file is refused, shows the form again.
    """
    if request.form.get("look") == "columns":
        return _form({}, _columns())
    headers = typed_all("header")
    mapping = Mapping(headers, typed_all("column")) if headers else None  # before the columns are known
    try:
        job = _accept(_file(), mapping)
    except Invalid as error:
        # Faults of the whole file are shown at its field.
        return _form({"file": sentence_of(error)}, _columns(mapping)), 422
    except Conflict as error:
        return _form({"file": error.detail}), 409
    return to("import_pages.show", import_id=job.resource_id)


@blueprint.get("/imports/<import_id>")
@page("contacts.import")
def show(import_id: str) -> Answer:
    """Shows the progress of the import and its bad lines, which are also available as a file."""
    found = Import.find(workspace_id(), import_id)
    if lists.wanted_format():
        return lists.file_of(
            lambda: [row for each in _errors(found.id, None, lists.MOST_EXPORTED) for row in _faults(each)],
            f"{found.id}-errors",
        )
    return _show(found, {})


@blueprint.post("/imports/<import_id>/lines")
@page("contacts.import", most_bytes=2 * MOST_BYTES)
def take_lines(import_id: str) -> Answer:
    """Returns the lines that were not, or only partly, imported, to correct and import again.

    The user sends the file again, because the service does not keep it: lines that became no contact could not be
    erased together with a contact. If the file is refused, shows the import again.
    """
    found = Import.find(workspace_id(), import_id)
    numbers = {error.number for error in _errors(found.id, None, lists.MOST_EXPORTED)}
    try:
        file, size = _sized(_file())
        with bounds.reading_import(workspace_id()), import_lines.memory_for(size):
            text = _lines(file, numbers)
    except Invalid as error:
        return _show(found, errors_of(error)), 422
    is_json = text.startswith("{")
    # Without a byte order mark, Excel reads a CSV file as Windows-1252.
    body = text.encode(errors="replace") if is_json else text.encode("utf-8-sig", "replace")
    response = Response(body, mimetype="application/x-ndjson" if is_json else "text/csv")
    name = f"{found.id}-lines.{'jsonl' if is_json else 'csv'}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _show(found: Import, errors: dict[str, str]) -> str:
    return render_template(
        "contacts/import.html",
        found=imports.represent(found),
        page=lists.numbered(partial(_errors, found.id)),
        groups=LineError.groups(found.id),
        faults=_faults,
        errors=errors,
        address=lists.address,
    )


def _file() -> IO[bytes]:
    found = request.files.get("file")
    if found is None or not found.filename:
        raise Invalid(Fault("/file", "Choose a file."))
    return found.stream


def _columns(mapping: Mapping | None = None) -> list[Column]:
    """Returns the columns of the uploaded file, with the chosen targets; none if it is not a table."""
    try:
        with import_texts.opened(_file(), "replace") as text:
            is_table = import_texts.first_sign(text) not in ("[", "{")
        columns = import_columns.read(_file()) if is_table else []
    except Invalid:
        return []
    if mapping is None or [column.header for column in columns] != mapping.headers:
        return columns
    return [replace(column, target=target) for column, target in zip(columns, mapping.targets, strict=False)]


def _sized(file: IO[bytes]) -> tuple[IO[bytes], int]:
    """Rewinds the file, and returns it with its size in bytes. Raises Invalid if it is too large."""
    size = file.seek(0, 2)
    if size > MOST_BYTES:
        raise Invalid(Fault("/file", f"The file is larger than {MOST_BYTES // 1024**2} MiB. Split it."))
    file.seek(0)
    return file, size


def _accept(given: IO[bytes], mapping: Mapping | None) -> Job:
    file, size = _sized(given)
    digest = hashlib.file_digest(file, "sha256").digest()  # type: ignore[arg-type]
    with bounds.reading_import(workspace_id()), import_lines.memory_for(size):
        lines = _read(file, mapping, _country())
        import_id = ids.new("imp")
        store = partial(imports.store, workspace_id(), import_id, lines=lines)
        return writes.begin("contacts.import", import_id, store, digest)


def _country() -> str:
    """Returns the country for phone numbers without a country code; "" if none. Raises Invalid."""
    country = typed("country")["country"]
    if country and country not in countries.names():
        raise Invalid(Fault("/country", "There is no such country."))
    return country


def _lines(file: IO[bytes], numbers: Collection[int]) -> str:
    """Returns the lines of the file with these numbers, as `_read` counts them. Raises Invalid."""
    with import_texts.opened(file, "surrogateescape") as text:
        first = import_texts.first_sign(text)
        if first == "[":
            raise Invalid(Fault("/file", "This is a list in JSON. Lines can be taken of CSV and of lines of JSON."))
        if first == "{":
            return "".join(line for number, line in enumerate(text, start=1) if number in numbers)
    return import_tables.lines_of(file, numbers)


def _read(file: IO[bytes], mapping: Mapping | None, country: str) -> Lines:
    """Reads a JSON list, JSON lines or a table, told apart by the first character."""
    with import_texts.opened(file, "surrogateescape") as text:
        first = import_texts.first_sign(text)
        if first == "[":
            return import_lines.read_list(text.read())
        if first == "{":
            return import_lines.read(line.encode(errors="surrogateescape") for line in text)
    return import_tables.read(file, mapping, country)


def _errors(import_id: str, after: str | None, limit: int) -> list[LineError]:
    return LineError.of(import_id, after, limit, with_imported=True)


def _faults(error: LineError) -> list[dict[str, Any]]:
    """Returns the faults of the line, each with its `line`, `field` and `detail`."""
    problem = error.problem
    faults = problem.get("errors") or [{"pointer": "", "detail": problem.get("detail", problem.get("title", ""))}]
    return [
        {"line": error.number, "field": fault["pointer"].removeprefix("/"), "detail": fault["detail"]}
        for fault in faults
    ]


def _form(errors: dict[str, str], found: Sequence[Column] = ()) -> str:
    chosen = typed("country")["country"] if request.method == "POST" else None
    own = countries.of_time_zone(workspaces.find(workspace_id()).timezone)
    return render_template(
        "contacts/new_import.html",
        errors=errors,
        most_lines=MOST_LINES,
        most_mib=MOST_BYTES // 1024**2,
        columns=import_columns.PLAIN,
        found=found,
        targets=_TARGETS,
        countries=[("", "none: leave such numbers out"), *countries.names().items()],
        country=own if chosen is None else chosen,
        recent=Job.newest(workspace_id(), ["contacts.import"], None, None, MOST_RECENT),
    )
