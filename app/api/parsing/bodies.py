"""Reads bodies: JSON objects of limited size, and large bodies into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

import structlog
from flask import Flask, Request
from webargs.core import is_json
from werkzeug.exceptions import BadRequest, HTTPException, RequestEntityTooLarge, UnsupportedMediaType

from app.domain.bodies.objects import MAX_BODY_BYTES, object_in
from app.errors import Unavailable

_PART_BYTES = 64 * 1024
_log = structlog.get_logger(__name__)
T = TypeVar("T")


def install(app: Flask) -> None:
    """Limits the bodies that `app` reads to MAX_BODY_BYTES."""
    app.config["MAX_CONTENT_LENGTH"] = _read_limit(MAX_BODY_BYTES)


def read_object(request: Request) -> dict[str, Any] | None:
    """Returns the JSON object in the body; None without a body.

    Raises RequestEntityTooLarge, UnsupportedMediaType, BadRequest, Malformed (not JSON) and Invalid (not an object).
    """
    raw = whole_body(request, MAX_BODY_BYTES)
    if not raw:
        return None
    if not is_json(request.mimetype):
        raise UnsupportedMediaType
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise UnsupportedMediaType("The body must not be compressed: send it without Content-Encoding.")
    return object_in(raw)


def whole_body(request: Request, most_bytes: int) -> bytes:
    """Returns the raw body. Raises RequestEntityTooLarge, and BadRequest if it is incomplete."""
    request.max_content_length = _read_limit(most_bytes)
    raw = _read_to_end(request.get_data)  # keeps the body, which is part of an idempotency key's fingerprint
    _check_length(request, len(raw), most_bytes)
    return raw


@contextmanager
def spooled_body(request: Request, most_bytes: int) -> Iterator[IO[bytes]]:
    """Reads the raw body into a file, positioned at its end.

    A body above MAX_BODY_BYTES is on disk, so that slow uploads take up no memory. Raises RequestEntityTooLarge above
    `most_bytes`, BadRequest, and Unavailable if the disk is full.
    """
    request.max_content_length = _read_limit(most_bytes)
    with SpooledTemporaryFile(MAX_BODY_BYTES) as body:
        try:
            while part := _read_to_end(partial(request.stream.read, _PART_BYTES)):
                body.write(part)
            body.flush()
        except OSError as error:  # an error of the file: errors of the connection have become BadRequest
            _log.error("body.not_kept", error=str(error))
            with suppress(OSError):
                body.close()  # otherwise, leaving the `with` block would flush and fail again
            raise Unavailable("There is no room for the body at this moment. Try again shortly.") from error
        _check_length(request, body.tell(), most_bytes)
        yield body


def _read_limit(most_bytes: int) -> int:
    # werkzeug silently truncates a chunked body at its limit. One more byte shows that the body exceeds ours.
    return most_bytes + 1


def _read_to_end(read: Callable[[], T]) -> T:
    try:
        return read()
    except HTTPException:
        raise
    except Exception as error:  # gunicorn's errors, for malformed chunks or a lost connection
        raise BadRequest("The body could not be read completely.") from error


def _check_length(request: Request, length: int, most_bytes: int) -> None:
    if length > most_bytes:
        raise RequestEntityTooLarge
    # RFC 9112, section 8: an incomplete message. gunicorn does not report it.
    if length < (request.content_length or 0):
        raise BadRequest("The body is shorter than its Content-Length.")
