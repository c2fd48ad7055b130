"""The page that shows the OpenAPI document. It loads nothing from other servers."""

from __future__ import annotations

from pathlib import Path

from flask import Blueprint, Response, render_template, send_from_directory
from swagger_ui_bundle import swagger_ui_path

from app.errors import NotFound

_FILES = {"swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"}
_OWN_FILES = {"start.js"}
_OWN = Path(__file__).parent / "templates" / "docs"
# Swagger UI uses `data:` icons and inline styles.
_POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"

blueprint = Blueprint("docs", __name__, url_prefix="/api/docs", template_folder="templates")


@blueprint.get("")
def show_docs() -> Response:
    """Sends the page."""
    return _guarded(Response(render_template("docs/index.html"), mimetype="text/html"))


@blueprint.get("/<name>")
def show_file(name: str) -> Response:
    """Sends a script, style or image of the page. Raises NotFound."""
    if name in _OWN_FILES:
        return _guarded(send_from_directory(_OWN, name, max_age=3600))
    if name in _FILES:
        return _guarded(send_from_directory(str(swagger_ui_path), name, max_age=86_400))
    raise NotFound


def _guarded(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
