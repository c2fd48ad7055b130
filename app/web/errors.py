"""Error pages: they say what happened and what to do next, in the usual layout."""

from __future__ import annotations

import structlog
from flask import Flask, Response, current_app, render_template, request
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import HTTPException

from app.config import settings
from app.database import DatabaseAway
from app.errors import BellhopError
from app.lib import json
from app.problems import PROBLEMS, problem_document
from app.web import writes
from app.web.access import Forbidden, VisitRequired

_log = structlog.get_logger("pages")
_STALE = "This form was open for too long, or was not sent from our page. Go back, reload the page and send it again."
_RETRY_AFTER_SECONDS = "5"
_SLUGS = {404: "not-found", 405: "method-not-allowed", 413: "payload-too-large"}


def install(pages: Flask) -> None:
    """Gives every error a page, or a problem document if the client does not read HTML."""
    pages.register_error_handler(Exception, _show)


def _show(error: Exception) -> Response:
    try:
        return _answer(error)
    except DatabaseAway as away:  # rendering the error page queries the database, too
        return _away(away)


def _answer(error: Exception) -> Response:
    if isinstance(error, CSRFError):
        return _page(400, "This form is stale", _STALE)
    if isinstance(error, VisitRequired):
        return _page(403, "Say why first", error.detail)
    if isinstance(error, Forbidden):
        return _page(403, "Your role does not include this", error.detail)
    if isinstance(error, DatabaseAway):
        return _away(error)
    if isinstance(error, BellhopError) and error.slug != "internal-error":
        problem = PROBLEMS[error.slug]
        response = _page(problem.status, problem.title, error.detail)
        if seconds := getattr(error, "retry_after_seconds", None):
            response.headers["Retry-After"] = str(seconds)
        return response
    if isinstance(error, HTTPException) and error.code and error.code < 500:
        problem = PROBLEMS.get(_SLUGS.get(error.code, ""), PROBLEMS["malformed-request"])
        # The problem's own sentence names the limit of the API. Forms have limits of their own.
        too_large = f"What was sent is larger than {(request.max_content_length or 0) // 1024**2} MiB."
        return _page(error.code, problem.title, too_large if error.code == 413 else problem.detail)
    _log.error("unexpected_error", exc_info=error)
    return _page(500, "Something went wrong here", "It was logged. Try again; if it stays, give us the number below.")


def _away(error: Exception) -> Response:
    _log.error("database_unavailable", exc_info=error)
    detail = "Try again in a few seconds. If you were saving something, first check whether it was saved."
    return _page(503, "The database cannot be reached", detail, has_viewer=False)


def _page(status: int, title: str, detail: str, *, has_viewer: bool = True) -> Response:
    trace_id, accepted = writes.trace_id(), request.accept_mimetypes
    if not accepted["text/html"] or accepted.best == "application/json":
        slug = next((slug for slug, problem in PROBLEMS.items() if problem.status == status), "internal-error")
        document = problem_document(slug, detail, trace_id, base_url=settings().base_url)
        response = Response(json.dumps(document), status, mimetype="application/problem+json")
    else:
        facts = {"status": status, "title": title, "detail": detail, "trace_id": trace_id}
        if has_viewer:
            text = render_template("error.html", **facts)
        else:  # `render_template` would look up the viewer in the database
            text = current_app.jinja_env.get_template("error.html").render(request=request, viewer=None, **facts)
        response = Response(text, status, mimetype="text/html")
    if status == 503:
        response.headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return response
