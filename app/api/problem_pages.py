"""The pages that `type` in a problem document refers to."""

from __future__ import annotations

import base64
import hashlib
from http import HTTPStatus
from pathlib import Path

from flask import Blueprint, Response, render_template
from markupsafe import Markup

from app.errors import NotFound
from app.problems import PROBLEMS

_STYLE = (Path(__file__).parent / "templates" / "problems" / "style.css").read_text()
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'"

blueprint = Blueprint("problem_pages", __name__, url_prefix="/problems", template_folder="templates")


@blueprint.get("")
def list_problems() -> Response:
    """Lists all problems."""
    return _page("problems/index.html", problems=PROBLEMS.values())


@blueprint.get("/<slug>")
def show_problem(slug: str) -> Response:
    """Explains one problem. Raises NotFound for an unknown slug."""
    if slug not in PROBLEMS:
        raise NotFound
    return _page("problems/problem.html", problem=PROBLEMS[slug])


def _page(template: str, **values: object) -> Response:
    # Not escaped, because the policy contains the hash of the file's own text.
    html = render_template(template, style=Markup(_STYLE), phrase=lambda status: HTTPStatus(status).phrase, **values)
    response = Response(html, mimetype="text/html")
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cache-Control"] = "public, max-age=3600"
    return response
