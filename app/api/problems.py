"""Converts exceptions to problem documents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import peewee
import structlog
from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import BadRequestKeyError, HTTPException, InternalServerError, MethodNotAllowed
from werkzeug.http import HTTP_STATUS_CODES
from werkzeug.routing import Map

from app.api import missing
from app.api.request_ids import request_id
from app.domain.insight import refused_requests
from app.domain.people.tokens import Caller
from app.errors import BellhopError, NotFound
from app.lib import json
from app.problems import PROBLEMS, problem_document, problem_of_error

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = "5"

_DATABASE_IS_AWAY = (peewee.OperationalError, peewee.InterfaceError)
_SLUG_OF_STATUS = {
    status: slug
    for slug, status in ((problem.slug, problem.status) for problem in PROBLEMS.values())
    if slug not in ("automation-not-published", "idempotency-key-reused")
}
_HEADERS_KEPT = {"allow", "retry-after", "www-authenticate"}
_log = structlog.get_logger("api")


def install(app: Flask, base_url: str) -> None:
    """Turns every error of `app` into a problem response, with a `type` below `base_url`."""

    def answer(error: Exception) -> Response:
        if isinstance(error, InternalServerError) and isinstance(error.original_exception, Exception):
            error = error.original_exception
        if isinstance(error, BellhopError) and error.slug != "internal-error":
            if isinstance(error, NotFound) and error.detail == PROBLEMS[error.slug].detail:
                error = NotFound(missing.detail(request, base_url))
            retry_after = str(getattr(error, "retry_after_seconds", RETRY_AFTER_SECONDS))
            return _refused(problem_of_error(error, request_id(), base_url=base_url), retry_after)
        if isinstance(error, HTTPException):
            return _http_refused(error, base_url)
        if isinstance(error, _DATABASE_IS_AWAY):
            _log.error("database_unavailable", request_id=request_id(), exc_info=error)
            return _refused(problem_document("unavailable", None, request_id(), base_url=base_url))
        _log.error("unexpected_error", request_id=request_id(), exc_info=error)
        return _refused(problem_document("internal-error", None, request_id(), base_url=base_url))

    app.register_error_handler(Exception, answer)
    app.register_error_handler(HTTPException, answer)


def problem_response(document: dict[str, object]) -> Response:
    """Returns a response with the problem `document` as its body, and its status."""
    status = document["status"]
    assert isinstance(status, int)
    return Response(json.dumps(document), status, mimetype=MEDIA_TYPE)


def _refused(document: dict[str, object], retry_after: str = RETRY_AFTER_SECONDS) -> Response:
    response = problem_response(document)
    _note(document)
    if document["status"] == 401:
        # RFC 6750, section 3.1: no error code unless a token was sent.
        sent = "Authorization" in request.headers
        response.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if sent else "Bearer"
    if document["status"] in (429, 503):
        response.headers["Retry-After"] = retry_after
    return response


def _note(document: Mapping[str, Any]) -> None:
    """Records the refusal, so that its `traceId` can be searched for, if the token was valid."""
    who: Caller | None = g.get("caller")
    if who is None:
        return
    rule = request.url_rule.rule if request.url_rule is not None else None
    refused_requests.note(
        who.workspace_id,
        who.token_id,
        request_id(),
        (request.method, refused_requests.shown_path(request.path, rule, _words(current_app.url_map))),
        (document["type"].rpartition("/")[2], document["status"]),
        [error["pointer"] for error in document.get("errors", ()) if error["pointer"]],
    )


@lru_cache(1)
def _words(rules: Map) -> frozenset[str]:
    """Returns the literal segments of all routes, without parameters."""
    return frozenset(part for rule in rules.iter_rules() for part in rule.rule.split("/") if not part.startswith("<"))


def _http_refused(error: HTTPException, base_url: str) -> Response:
    status = error.code or 500
    slug = _SLUG_OF_STATUS.get(status)
    if slug is None:
        # The table has no such status: see RFC 9457, section 4.2.1.
        document: dict[str, object] = {"type": "about:blank", "title": HTTP_STATUS_CODES.get(status, "Error")}
        document |= {"status": status, "detail": "The request was refused.", "traceId": request_id()}
    else:
        detail = _own_detail(error) or (missing.detail(request, base_url) if status == 404 else None)
        document = dict(problem_document(slug, detail, request_id(), base_url=base_url))
    if slug == "validation-failed":
        document["errors"] = [{"pointer": "", "detail": document["detail"]}]
    response = _refused(document)
    for name, value in error.get_headers(request.environ):
        if name.lower() in _HEADERS_KEPT:
            response.headers[name] = value
    return response


def _own_detail(error: HTTPException) -> str | None:
    """Returns our description of `error`, or a 405's methods; None for werkzeug's, and for 5xx."""
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        return f"This address does not support {request.method}. It supports {', '.join(sorted(error.valid_methods))}."
    if (error.code or 500) >= 500 or isinstance(error, BadRequestKeyError):
        return None
    return None if error.description == type(error).description else error.description
