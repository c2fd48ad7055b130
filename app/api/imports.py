"""Imports of contacts: a list as JSON lines, by one job."""

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
from app.api.lists import PageQuery, collection, envelope, page_of
from app.api.parsing import MAX_BODY_BYTES, Blueprint, Schema, load, object_in, spooled_body
from app.api.responses import respond, time
from app.api.writes import answer, once_key, write_of
from app.config import settings
from app.domain import imports, jobs
from app.domain.imports import Line
from app.errors import Fault, Invalid, Unavailable
from app.lib import ids
from app.lib.problems import problem_document, problem_of_error
from app.models.imports import LineError
from app.models.jobs import Job

blueprint = Blueprint("imports", __name__, description="Many contacts by one job.")

MEDIA_TYPES = ("application/x-ndjson", "application/jsonl")
MOST_LINES = 10_000
MOST_BYTES = 16 * 1024 * 1024
LONGEST_LINE_BYTES = MAX_BODY_BYTES  # that of a body of one contact

_EXAMPLE = '{"email": "ada@example.com", "tags": ["vip"]}\n{"external_id": "customer-1042", "first_name": "Ada"}\n'
_upsert = ContactUpsert()
# One large body at a time is in the memory of a process: to check and store it takes several times its bytes.
_large = Lock()
PATIENCE_SECONDS = 5.0


class ImportSchema(ProgressSchema):
    id = fields.String(required=True)
    job_id = fields.String(required=True)
    status = fields.String(required=True, validate=validate.OneOf(["running", "finished"]))
    created_at = time("When it was accepted.")
    finished_at = time("When it ended.", allow_none=True)


class LineErrorSchema(Schema):
    line = fields.Integer(required=True, metadata={"description": "Its number in the body; the first is 1."})
    problem = fields.Dict(
        required=True, metadata={"description": "The problem document that the line alone would have been answered."}
    )


@blueprint.route("/workspaces/<workspace>/contacts/import", methods=["POST"])
@authorize("contacts")
@blueprint.doc(
    requestBody={
        "required": True,
        "description": f"Up to {MOST_LINES:,} contacts, each a line of JSON as the body of `POST contacts`; at most "
        f"{MOST_BYTES // 1024**2} MiB, and {LONGEST_LINE_BYTES // 1024} KiB a line. Empty lines count and do nothing.",
        "content": {
            kind: {"schema": {"type": "string", "pattern": r"\S"}, "example": _EXAMPLE} for kind in MEDIA_TYPES
        },
    }
)
@accepts_write(ImportSchema, made=True)
def import_contacts() -> Response:
    """Make or change many contacts by one job; what is wrong with a line is told of it alone."""
    return answer(*_take())


@blueprint.route("/workspaces/<workspace>/imports/<import_id>", methods=["GET"])
@authorize("contacts")
@blueprint.response(200, envelope(ImportSchema))
def show_import(import_id: str) -> Response:
    """Show an import and how far it is."""
    return respond(200, {"data": imports.represent(imports.find(caller().workspace_id, import_id))})


@collection(blueprint, "/imports/<import_id>/errors")
@authorize("contacts")
@blueprint.arguments(PageQuery, location="query")
@blueprint.response(200, envelope(LineErrorSchema, many=True))
def list_line_errors(query: dict[str, Any], import_id: str) -> Response:
    """List the lines of an import that were refused, in their order."""
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


def _take() -> tuple[Job, bool]:
    """The job of the import, and whether that was there before. When it returns nothing of the body is in memory."""
    _refuse_other_types()
    try:
        with spooled_body(request, MOST_BYTES) as body, _turn(body.tell()):
            body.seek(0)
            once, import_id = once_key(body.read()), ids.new("imp")
            body.seek(0)
            good, bad = _read_lines(body)
            store = partial(imports.store, caller().workspace_id, import_id, good=good, bad=bad)
            return jobs.accept(write_of("contacts.import", {}, import_id), once, store)
    except RequestEntityTooLarge as error:
        raise RequestEntityTooLarge(f"The body is larger than {MOST_BYTES // 1024**2} MiB.") from error


@contextmanager
def _turn(size_bytes: int) -> Iterator[None]:
    """Waits until a body of that size may be in memory. Raises Unavailable where that takes too long."""
    if size_bytes <= MAX_BODY_BYTES:
        yield
        return
    if not _large.acquire(timeout=PATIENCE_SECONDS):
        raise Unavailable("Other large imports are being read at this moment. Try again shortly.")
    try:
        yield
    finally:
        _large.release()


def _refuse_other_types() -> None:
    if request.mimetype not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"The body must be JSON lines: send it with 'Content-Type: {MEDIA_TYPES[0]}'.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")


def _read_lines(texts: Iterable[bytes]) -> tuple[list[Line], list[Line]]:
    """The good and the bad lines. Raises Invalid where there are none, or too many."""
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
