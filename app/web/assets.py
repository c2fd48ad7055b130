"""Assets: style sheets and scripts. The address of each changes with its content."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from flask import Flask, Response, abort, request, url_for

from app.web import access

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Asset:
    """A file in `static`, compressed once, when it is read."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.content = path.read_bytes()
        self.compressed = gzip.compress(self.content, mtime=0)
        self.media_type = _TYPES[path.suffix]
        self.version = hashlib.sha256(self.content).hexdigest()[:12]


def install(pages: Flask) -> None:
    """Serves the assets, and gives templates `asset(name)`, which returns an asset's address."""
    found = {path.name: Asset(path) for path in (Path(__file__).parent / "static").iterdir() if path.suffix in _TYPES}

    @access.asset
    def show_asset(version: str, name: str) -> Response:
        """Sends an asset, which browsers may keep for a year: its address changes with its content."""
        asset = found.get(name)
        if asset is None or asset.version != version:
            abort(404)
        is_compressed = request.accept_encodings["gzip"] > 0
        response = Response(asset.compressed if is_compressed else asset.content, mimetype=asset.media_type)
        if is_compressed:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    def asset(name: str) -> str:
        return url_for("show_asset", version=found[name].version, name=name)

    pages.add_url_rule("/static/<version>/<name>", "show_asset", show_asset)
    pages.jinja_env.globals["asset"] = asset
