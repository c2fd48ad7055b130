"""Assets: style sheets and scripts. Their addresses change with their content."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from flask import Flask, Response, abort, request, url_for
from markupsafe import Markup

from app.web import access

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# A line of a script that is only a comment: an eighth of all bytes, even compressed.
_COMMENT = re.compile(rb"^ *//.*\n", re.MULTILINE)
_IMPORT = re.compile(rb'^import .*"\./(\w+\.js)";$', re.MULTILINE)


class Asset:
    """A file in `static`, compressed once, when it is read. Scripts are sent without their comments."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.content = path.read_bytes()
        if path.suffix == ".js":
            self.content = _COMMENT.sub(b"", self.content)
        self.compressed = gzip.compress(self.content, mtime=0)
        self.media_type = _TYPES[path.suffix]
        self.imports = [name.decode() for name in _IMPORT.findall(self.content)]


def install(pages: Flask) -> None:
    """Serves the assets. Gives templates `asset(name)`, an address, and `scripts(*names)`, tags."""
    found = {path.name: Asset(path) for path in (Path(__file__).parent / "static").iterdir() if path.suffix in _TYPES}
    # All have one version: scripts import each other by relative addresses, and must not get a script of another one.
    current = hashlib.sha256(b"".join(found[name].content for name in sorted(found))).hexdigest()[:12]

    @access.asset
    def show_asset(version: str, name: str) -> Response:
        """Sends an asset, which browsers may keep for a year: its address changes with its content."""
        asset = found.get(name)
        if asset is None or version != current:
            abort(404)
        is_compressed = request.accept_encodings["gzip"] > 0
        response = Response(asset.compressed if is_compressed else asset.content, mimetype=asset.media_type)
        if is_compressed:
            response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding"
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    def asset(name: str) -> str:
        return url_for("show_asset", version=current, name=name)

    def imported(name: str) -> Iterator[str]:
        for each in found[name].imports:
            yield each
            yield from imported(each)

    @cache
    def scripts(*names: str) -> Markup:
        """Returns the tags of scripts, and tags that make the browser fetch their imports at once."""
        preloaded = sorted({each for name in names for each in imported(name)}.difference(names))
        tags = [f'<link rel="modulepreload" href="{asset(each)}">' for each in preloaded]
        tags += [f'<script type="module" src="{asset(each)}"></script>' for each in names]
        return Markup("\n".join(tags))

    pages.add_url_rule("/static/<version>/<name>", "show_asset", show_asset)
    pages.jinja_env.globals.update(asset=asset, scripts=scripts)
