"""Parses paths, queries and bodies strictly. Refuses input that a route does not declare."""

from __future__ import annotations

from flask import Flask

from app.api.parsing import bodies, paths


def install(app: Flask) -> None:
    """Installs the routing of `paths` and the size limit of `bodies`."""
    paths.install(app)
    bodies.install(app)
