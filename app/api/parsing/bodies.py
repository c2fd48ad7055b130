"""Bodies: JSON objects of limited size, and large ones in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from json import loads as loads_leniently
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

import structlog
from flask import Flask, Request
from webargs.core import is_json
from werkzeug.exceptions import BadRequest, HTTPException, RequestEntityTooLarge, UnsupportedMediaType

from app.api.parsing.faults import refuse_bad_text
from app.errors import Fault, Invalid, Unavailable
from app.lib import json

MAX_BODY_BYTES = 256 * 1024
OBJECT_REQUIRED = Fault("", "A JSON object is required.")
_PART_BYTES = 64 * 1024
_log = structlog.get_logger(__name__)
T = TypeVar("T")


def install(app: Flask) -> None:
    """Limits the bodies that `app` reads to MAX_BODY_BYTES."""
    app.config["MAX_CONTENT_LENGTH"] = _read_limit(MAX_BODY_BYTES)


def read_object(request: Request) -> dict[str, Any] | None:
    """The body's JSON object, None if there is no body.

    Raises RequestEntityTooLarge, UnsupportedMediaType, BadRequest (not JSON) and Invalid (not an object).
    """
    raw = _read_to_end(request.get_data)  # keeps the body: its bytes are part of an idempotency key's fingerprint
    _check_length(request, len(raw), MAX_BODY_BYTES)
    if not raw:
        return None
    if not is_json(request.mimetype):
        raise UnsupportedMediaType
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")
    return object_in(raw)


def object_in(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`. Raises BadRequest (not JSON) and Invalid (not an object, or text with U+0000)."""
    value = _read_json(raw)
    if not isinstance(value, dict):
        raise Invalid(OBJECT_REQUIRED)
    return value


@contextmanager
def spooled_body(request: Request, most_bytes: int) -> Iterator[IO[bytes]]:
    """The raw body in a file, positioned at its end. Above MAX_BODY_BYTES the file is on disk, however slow the upload.

    Raises RequestEntityTooLarge above `most_bytes`, BadRequest, and Unavailable if the disk is full.
    """
    request.max_content_length = _read_limit(most_bytes)
    with SpooledTemporaryFile(MAX_BODY_BYTES) as body:
        try:
            while part := _read_to_end(partial(request.stream.read, _PART_BYTES)):
                body.write(part)
            body.flush()
        except OSError as error:  # of the file: one of the connection has become a BadRequest
            _log.error("body.not_kept", error=str(error))
            with suppress(OSError):
                body.close()  # leaving the `with` block would flush again, and fail again
            raise Unavailable("There is no room for the body at this moment. Try again shortly.") from error
        _check_length(request, body.tell(), most_bytes)
        yield body


def _read_limit(most_bytes: int) -> int:
    # werkzeug silently truncates a chunked body at its limit. One byte more shows that the body exceeds ours.
    return most_bytes + 1


def _read_to_end(read: Callable[[], T]) -> T:
    try:
        return read()
    except HTTPException:
        raise
    except Exception as error:  # gunicorn's own, for malformed chunks or a lost connection
        raise BadRequest("The body could not be read completely.") from error


def _check_length(request: Request, length: int, most_bytes: int) -> None:
    if length > most_bytes:
        raise RequestEntityTooLarge
    # RFC 9112, section 8: an incomplete message. gunicorn does not report it.
    if length < (request.content_length or 0):
        raise BadRequest("The body is shorter than its Content-Length.")


def _read_json(raw: bytes) -> Any:
    try:
        value = json.loads(raw)
    except ValueError as error:
        if b"\\ud" in raw.lower():
            _refuse_lone_surrogates(raw)
        raise BadRequest(f"The body is not valid JSON: {error}.") from error
    if b"\\u0000" in raw:
        refuse_bad_text(value)
    return value


def _refuse_lone_surrogates(raw: bytes) -> None:
    """Raises Invalid, pointing at lone surrogates, if `raw` has any: orjson does not say where they are."""
    try:
        value = loads_leniently(raw)
    except (ValueError, RecursionError):
        return
    refuse_bad_text(value)
