"""Error pages: what happened and what to do next, in the layout of all pages."""

from __future__ import annotations

import structlog
from flask import Flask, Response, render_template, request
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import HTTPException

from app.config import settings
from app.database import DatabaseAway
from app.errors import BellhopError
from app.lib import json
from app.lib.problems import PROBLEMS, problem_document
from app.web.access import VisitRequired

_log = structlog.get_logger("pages")
_STALE = "This form was open for too long, or was not sent from our page. Go back, reload the page and send it again."
_SLUGS = {404: "not-found", 405: "method-not-allowed", 413: "payload-too-large"}


def install(pages: Flask) -> None:
    """Gives every error of `pages` a page, or a problem document where the client does not read HTML."""
    pages.register_error_handler(Exception, _show)


def _show(error: Exception) -> Response:
    if isinstance(error, CSRFError):
        return _page(400, "This form is stale", _STALE)
    if isinstance(error, VisitRequired):
        return _page(403, "Say why first", error.detail, "visit")
    if isinstance(error, BellhopError) and error.slug != "internal-error":
        problem = PROBLEMS[error.slug]
        return _page(problem.status, problem.title, error.detail)
    if isinstance(error, DatabaseAway):
        _log.error("database_unavailable", exc_info=error)
        return _page(503, "The database cannot be reached", "Nothing was changed. Try again in a few seconds.")
    if isinstance(error, HTTPException) and error.code and error.code < 500:
        problem = PROBLEMS.get(_SLUGS.get(error.code, ""), PROBLEMS["malformed-request"])
        return _page(error.code, problem.title, problem.detail)
    _log.error("unexpected_error", exc_info=error)
    return _page(500, "Something went wrong here", "It was logged. Try again; if it stays, give us the number below.")


def _page(status: int, title: str, detail: str, remedy: str | None = None) -> Response:
    trace_id = request.environ["bellhop.request_id"]
    if not request.accept_mimetypes["text/html"] or request.accept_mimetypes.best == "application/json":
        slug = next((slug for slug, problem in PROBLEMS.items() if problem.status == status), "internal-error")
        document = problem_document(slug, detail, trace_id, base_url=settings().base_url)
        return Response(json.dumps(document), status, mimetype="application/problem+json")
    html = render_template("error.html", status=status, title=title, detail=detail, trace_id=trace_id, remedy=remedy)
    return Response(html, status, mimetype="text/html")
