"""Bellhop: messaging, automation and signed webhooks. `create_app` wires the HTTP side together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from flask import Flask

# Paths of programs and files; all other paths are pages. `/v1/` is not part of the API, but a client that forgets
# `/api` should get a problem document, not an HTML page.
_API_PATHS = ("/api/", "/v1/", "/problems", "/healthz", "/readyz", "/media/", "/chat/", "/hooks/")
# A request with a token comes from a program, whatever its path.
_BEARER = "bearer bhp_"


def create_app() -> Flask:
    """Returns the WSGI application: the API, its documentation, the health checks, and the pages.

    The pages are a Flask application of their own, so that their sessions and hooks cost API requests nothing.
    `app.extensions["pages"]` holds that application.
    """
    # Imported here because every process imports this package, and processes that serve no pages would need 9 MiB more.
    from flask import Flask

    from app import api, database, logs, web
    from app.api import request_ids
    from app.config import settings
    from app.logs import tracing

    logs.configure("web", gather=True)
    tracing.start("web")
    database.connect()
    app = Flask(__name__, static_folder=None)
    api.install(app, settings().base_url)
    pages = app.extensions["pages"] = web.create_pages()
    request_ids.install(pages)
    app.wsgi_app = _by_path(app.wsgi_app, pages.wsgi_app)  # type: ignore[assignment, method-assign]
    return app


def _by_path(api: WSGIApplication, pages: WSGIApplication) -> WSGIApplication:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        is_api = environ["PATH_INFO"].startswith(_API_PATHS)
        if not is_api:
            is_api = environ.get("HTTP_AUTHORIZATION", "")[: len(_BEARER)].lower() == _BEARER
        chosen = api if is_api else pages
        return chosen(environ, start_response)

    return application
