"""Error pages: what happened and what to do next, in the usual layout."""

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
        return _page(403, "Say why first", error.detail, "visit")
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
        return _page(error.code, problem.title, _too_large() if error.code == 413 else problem.detail)
    _log.error("unexpected_error", exc_info=error)
    return _page(500, "Something went wrong here", "It was logged. Try again; if it stays, give us the number below.")


def _too_large() -> str:
    """Names the limit of this form, which differs from the API's."""
    return f"What was sent is larger than {(request.max_content_length or 0) // 1024**2} MiB."


def _page(status: int, title: str, detail: str, remedy: str | None = None) -> Response:
    if _is_program():
        return _document(status, detail)
    facts = {"status": status, "title": title, "detail": detail, "trace_id": _trace_id(), "remedy": remedy}
    response = Response(render_template("error.html", **facts), status, mimetype="text/html")
    return _with_retry(response)


def _away(error: Exception) -> Response:
    """Renders an error page without the database and without the viewer."""
    _log.error("database_unavailable", exc_info=error)
    detail = "Try again in a few seconds. If you were saving something, first check whether it was saved."
    if _is_program():
        return _document(503, detail)
    # Not `render_template`: it looks up the viewer in the database.
    template = current_app.jinja_env.get_template("error.html")
    facts = {"status": 503, "title": "The database cannot be reached", "detail": detail, "trace_id": _trace_id()}
    return _with_retry(Response(template.render(request=request, viewer=None, **facts), 503, mimetype="text/html"))


def _document(status: int, detail: str) -> Response:
    slug = next((slug for slug, problem in PROBLEMS.items() if problem.status == status), "internal-error")
    document = problem_document(slug, detail, _trace_id(), base_url=settings().base_url)
    return _with_retry(Response(json.dumps(document), status, mimetype="application/problem+json"))


def _with_retry(response: Response) -> Response:
    if response.status_code == 503:
        response.headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return response


def _is_program() -> bool:
    accepted = request.accept_mimetypes
    return not accepted["text/html"] or accepted.best == "application/json"


def _trace_id() -> str:
    return str(request.environ["bellhop.request_id"])
