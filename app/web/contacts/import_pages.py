"""Imports: a file of contacts, its progress, and what is wrong with its lines."""

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
from app.web.forms import Answer, errors_of, typed, typed_all
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
    """The form that takes a file, and the imports before."""
    return _form({})


@blueprint.post("/import")
@page("contacts.import", most_bytes=2 * MOST_BYTES)  # a file that is too large gets a sentence at its field
def create() -> Answer:
    """Accepts the file as one job, and leads to its progress; or only shows its columns, to choose what they are."""
    if request.form.get("look") == "columns":
        return _form({}, _columns())
    mapping = _mapping()
    try:
        job = _accept(_file(), mapping)
    except Invalid as error:
        # Whatever is wrong with the file as a whole belongs to its field.
        return _form({"file": next(iter(errors_of(error).values()))}, _columns(mapping)), 422
    except Conflict as error:
        return _form({"file": error.detail}), 409
    return to("import_pages.show", import_id=job.resource_id)


@blueprint.get("/imports/<import_id>")
@page("contacts.import")
def show(import_id: str) -> Answer:
    """How far the import is, and its bad lines; these as a file, too."""
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
    """The lines of the file, sent once more, that were not imported or only in part: to correct and import again.

    The service does not keep them: what nobody could be found for could not be erased with anybody either.
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
    # Excel takes a table without a byte order mark for Windows-1252.
    body = text.encode(errors="replace") if is_json else text.encode("utf-8-sig", "replace")
    response = Response(body, mimetype="application/x-ndjson" if is_json else "text/csv")
    name = f"{found.id}-lines.{'jsonl' if is_json else 'csv'}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _show(found: Import, errors: dict[str, str]) -> str:
    return render_template(
        "contacts/import.html",
        found=imports.represent(found),
        page=lists.sliced(partial(_errors, found.id), key=lambda error: str(error.number)),
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


def _mapping() -> Mapping | None:
    """What the form says about the columns; None if it does not know them."""
    headers, targets = typed_all("header"), typed_all("column")
    return Mapping(headers, targets) if headers else None


def _columns(mapping: Mapping | None = None) -> list[Column]:
    """The columns of the file that was sent, with what was chosen for them; none of a file that is no table."""
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
    """The file at its beginning, and its size in bytes. Raises Invalid if it is too large."""
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
    """The country that the form names for phones without a country's code; "" for none. Raises Invalid."""
    country = typed("country")["country"]
    if country and country not in countries.names():
        raise Invalid(Fault("/country", "There is no such country."))
    return country


def _lines(file: IO[bytes], numbers: Collection[int]) -> str:
    """The lines of the file with these numbers, as `_read` counts them. Raises Invalid."""
    with import_texts.opened(file, "surrogateescape") as text:
        first = import_texts.first_sign(text)
        if first == "[":
            raise Invalid(Fault("/file", "This is a list in JSON. Lines can be taken of CSV and of lines of JSON."))
        if first == "{":
            return "".join(line for number, line in enumerate(text, start=1) if number in numbers)
    return import_tables.lines_of(file, numbers)


def _read(file: IO[bytes], mapping: Mapping | None, country: str) -> Lines:
    """JSON lines begin with an object; anything else is a table."""
    with import_texts.opened(file, "surrogateescape") as text:
        first = import_texts.first_sign(text)
        if first == "[":
            return import_lines.read_list(text.read())
        if first == "{":
            return import_lines.read(line.encode(errors="surrogateescape") for line in text)
    return import_tables.read(file, mapping, country)


def _errors(import_id: str, after: str | None, limit: int) -> list[LineError]:
    is_number = after is not None and after.isascii() and after.isdigit() and len(after) < 10
    return LineError.of(import_id, after if is_number else None, limit, with_imported=True)


def _faults(error: LineError) -> list[dict[str, Any]]:
    """The line's faults, each with the field that it is about."""
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
