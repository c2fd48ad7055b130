"""Redirects to pages of the workspace, and the check of addresses that a form gives."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import flash, redirect, request, url_for
from werkzeug.wrappers import Response

from app.web.access import workspace_id


def to(endpoint: str, said: str | None = None, tone: str = "good", **path: Any) -> Response:
    """Redirects to a page of the workspace, which flashes `said` in the `tone` "good" or "error"."""
    if said:
        flash(said, tone)
    return redirect(url_for(endpoint, workspace=workspace_id(), **path), 303)


def ours(address: str) -> str | None:
    """Returns the path and query of an address on this site; None for any other address."""
    parts = urlsplit(address)
    is_here = not parts.netloc or parts.netloc == request.host
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_here and is_path and len(path) <= 4000 else None
