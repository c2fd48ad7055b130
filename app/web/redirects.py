"""Redirects: to a page of the workspace, and to addresses that come from forms, of which only our own are followed."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import flash, redirect, request, url_for
from werkzeug.wrappers import Response

from app.web.access import workspace_id


def to(endpoint: str, said: str | None = None, **path: Any) -> Response:
    """Leads to that page of the workspace, which then says that something went well."""
    if said:
        flash(said, "good")
    return redirect(url_for(endpoint, workspace=workspace_id(), **path), 303)


def ours(address: str) -> str | None:
    """The path and query of the address, if it is one of this site's; None for any other."""
    parts = urlsplit(address)
    is_here = not parts.netloc or parts.netloc == request.host
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_here and is_path and len(path) <= 4000 else None
