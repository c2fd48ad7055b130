"""Answers with a problem document if gunicorn cannot parse a request.

Neither shows nor logs the request's content.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import structlog
from gunicorn.http.errors import InvalidHeader, InvalidResponseHeader, InvalidResponseHeaderName, ParseException
from gunicorn.workers.gthread import ThreadWorker

from app.config import settings
from app.lib import json
from app.lib.request_ids import kept_or_new
from app.problems import problem_document

log = structlog.get_logger(__name__)

_OUR_FAULT = (InvalidResponseHeader, InvalidResponseHeaderName)


class RefusingWorker(ThreadWorker):
    """gunicorn's threaded worker, with problem documents for requests it cannot parse."""

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Handles a parsed request. Returns whether the connection is kept.

        Raises InvalidHeader for more than one Host header, and for none except in HTTP/1.0.
        """
        hosts = [name for name, _ in req.headers].count("HOST")
        if hosts > 1 or (not hosts and req.version > (1, 0)):  # RFC 9112, 3.2
            raise InvalidHeader("HOST", req=req)
        is_kept = super().handle_request(req, conn)
        req.is_answered = True
        return is_kept

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: Exception) -> None:
        """Responds with 400 for a bad request, else with 500. Never raises if the client has gone."""
        # The error is in the unread rest of a body whose request was answered. The client would take a second response
        # for the response to its next request.
        if getattr(req, "is_answered", False):
            return
        is_theirs = isinstance(exc, ParseException) and not isinstance(exc, _OUR_FAULT)
        slug, trace_id = "malformed-request" if is_theirs else "internal-error", kept_or_new(None)
        if is_theirs:
            log.warning("request.unreadable", request_id=trace_id, reason=type(exc).__name__)
        else:
            log.error("request.broke", request_id=trace_id, exc_info=exc)
        with suppress(OSError):
            client.sendall(_response(problem_document(slug, None, trace_id, base_url=settings().base_url)))


def _response(document: dict[str, Any]) -> bytes:
    body, status = json.dumps(document), document["status"]
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/problem+json\r\n"
        f"X-Request-Id: {document['traceId']}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
