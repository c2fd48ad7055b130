"""Bellhop: messaging, automation and signed webhooks. `create_app` wires the HTTP side together."""

from __future__ import annotations

from flask import Flask


def create_app() -> Flask:
    """The WSGI application: the API, its documentation and the health checks."""
    from app import api, database, logs
    from app.config import settings

    logs.configure("web", gather=True)
    database.connect()
    app = Flask(__name__, static_folder=None)
    api.install(app, settings().base_url)
    return app
