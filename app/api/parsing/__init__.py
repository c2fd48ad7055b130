"""Reads requests strictly: paths, queries and bodies. What a route has not declared is refused."""

from __future__ import annotations

from flask import Flask

from app.api.parsing import bodies, paths


def install(app: Flask) -> None:
    """Makes `app` find its routes as `paths` describes, and limits its bodies as `bodies` does."""
    paths.install(app)
    bodies.install(app)
