"""Imports: many contacts as JSON lines, in one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any

from flask import Response, request
from marshmallow import fields, validate
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from app.api.authentication import authorize, caller
from app.api.contacts import ContactUpsert
from app.api.jobs import ProgressSchema, accepts_write
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.parsing.bodies import MAX_BODY_BYTES, object_in, spooled_body
from app.api.parsing.faults import load
from app.api.responses import respond, time
from app.api.schemas import ResponseBody
from app.api.writes import answer, once_key, write_of
from app.config import settings
from app.domain import imports, jobs
from app.domain.imports import Line
from app.errors import Fault, Invalid, Unavailable
from app.lib import ids
from app.lib.problems import problem_document, problem_of_error
from app.models.imports import LineError
from app.models.jobs import Job

blueprint = Blueprint("imports", __name__, description="Many contacts in one job.")

MEDIA_TYPES = ("application/x-ndjson", "application/jsonl")
MOST_LINES = 10_000
MOST_BYTES = 16 * 1024 * 1024
LONGEST_LINE_BYTES = MAX_BODY_BYTES  # as for one contact

_EXAMPLE = '{"email": "ada@example.com", "tags": ["vip"]}\n{"external_id": "customer-1042", "first_name": "Ada"}\n'
_upsert = ContactUpsert()
# Parsing and storing a body takes several times its size in memory, so a process handles one large body at a time.
_large_body = Lock()
PATIENCE_SECONDS = 5.0


class ImportSchema(ProgressSchema):
    id = fields.String(required=True)
    job_id = fields.String(required=True)
    status = fields.String(required=True, validate=validate.OneOf(["running", "finished"]))
    created_at = time("When the import was accepted.")
    finished_at = time("When the import ended.", allow_none=True)


class LineErrorSchema(ResponseBody):
    line = fields.Integer(required=True, metadata={"description": "The line's number in the body; the first is 1."})
    problem = fields.Dict(
        required=True, metadata={"description": "The problem document that the line would get as a request of its own."}
    )


@blueprint.route("/workspaces/<workspace>/contacts/import", methods=["POST"])
@authorize("contacts")
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
@accepts_write(ImportSchema, made=True)
def import_contacts() -> Response:
    """Create or change many contacts in one job. A bad line gets its own error; the other lines are imported."""
    return answer(*_accept())


@blueprint.route("/workspaces/<workspace>/imports/<import_id>", methods=["GET"])
@authorize("contacts")
@blueprint.response(200, envelope(ImportSchema))
def show_import(import_id: str) -> Response:
    """Show an import and its progress."""
    return respond(200, {"data": imports.represent(imports.find(caller().workspace_id, import_id))})


@blueprint.route("/workspaces/<workspace>/imports/<import_id>/errors", methods=["GET"])
@authorize("contacts")
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(LineErrorSchema, many=True))
def list_line_errors(query: dict[str, Any], import_id: str) -> Response:
    """List the lines of an import that failed, in their order."""
    found = imports.find(caller().workspace_id, import_id)
    of_import = {**query, "import_id": found.id}
    return respond(
        200,
        page_of(
            lambda after, limit: LineError.of(found.id, after, limit),
            of_import,
            imports.represent_error,
            order=["number"],
        ),
    )


def _accept() -> tuple[Job, bool]:
    """The import's job, and whether it is a replay. The body's memory is free again when this returns."""
    _refuse_other_types()
    try:
        with spooled_body(request, MOST_BYTES) as body, _memory_for(body.tell()):
            body.seek(0)
            once, import_id = once_key(body.read()), ids.new("imp")
            body.seek(0)
            good, bad = _read_lines(body)
            store = partial(imports.store, caller().workspace_id, import_id, good=good, bad=bad)
            return jobs.accept(write_of("contacts.import", {}, import_id), once, store)
    except RequestEntityTooLarge as error:
        raise RequestEntityTooLarge(f"The body is larger than {MOST_BYTES // 1024**2} MiB.") from error


@contextmanager
def _memory_for(size_bytes: int) -> Iterator[None]:
    """Waits until a body of that size may be in memory. Raises Unavailable after PATIENCE_SECONDS."""
    if size_bytes <= MAX_BODY_BYTES:
        yield
        return
    if not _large_body.acquire(timeout=PATIENCE_SECONDS):
        raise Unavailable("Other large imports are being read at this moment. Try again shortly.")
    try:
        yield
    finally:
        _large_body.release()


def _refuse_other_types() -> None:
    if request.mimetype not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"The body must be JSON lines: send it with 'Content-Type: {MEDIA_TYPES[0]}'.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")


def _read_lines(texts: Iterable[bytes]) -> tuple[list[Line], list[Line]]:
    """The good and the bad lines. Raises Invalid if there are none or more than MOST_LINES."""
    good, bad = [], []
    for number, text in enumerate(texts, start=1):
        if number > MOST_LINES:
            raise Invalid(Fault("", f"An import has at most {MOST_LINES:,} lines."))
        if not text.strip():
            continue
        try:
            good.append(Line.of(number, _read_line(text)))
        except Invalid as error:
            bad.append(Line.of(number, problem_of_error(error, base_url=settings().base_url)))
        except BadRequest as error:
            bad.append(_refused(number, "malformed-request", error.description))
        except RequestEntityTooLarge as error:
            bad.append(_refused(number, "payload-too-large", error.description))
    if not good and not bad:
        raise Invalid(Fault("", "Give at least one contact, as a line of JSON."))
    return good, bad


def _read_line(text: bytes) -> Any:
    if len(text) > LONGEST_LINE_BYTES:
        raise RequestEntityTooLarge(f"The line is larger than {LONGEST_LINE_BYTES // 1024} KiB.")
    return load(_upsert, object_in(text))


def _refused(number: int, slug: str, detail: str | None) -> Line:
    return Line.of(number, problem_document(slug, detail, base_url=settings().base_url))
