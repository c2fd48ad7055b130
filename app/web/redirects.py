"""Redirects to addresses that come from forms: only our own are followed."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import request


def ours(address: str) -> str | None:
    """The path and query of the address, if it is one of this site's; None for any other."""
    parts = urlsplit(address)
    is_here = not parts.netloc or parts.netloc == request.host
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    is_path = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_here and is_path and len(path) <= 4000 else None
