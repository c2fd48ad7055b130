"""The public HTTP API: translates requests into domain verbs and what they say into responses."""

from __future__ import annotations

from functools import partial

from flask import Flask, Request
from werkzeug.routing import MapAdapter

from app.api import (
    audit_entries,
    authentication,
    billing,
    bookings,
    contacts,
    deliveries,
    docs,
    endpoints,
    event_kinds,
    health,
    imports,
    invoices,
    jobs,
    limits,
    me,
    openapi,
    parsing,
    problem_pages,
    problems,
    request_ids,
    sales,
    sweeps,
)
from app.api.responses import BareResponse

NOWHERE = "/\0"  # a path that no route has


def install(app: Flask, base_url: str) -> None:
    """Everything under /api/v1, the problem pages and the health checks."""
    app.url_map.strict_slashes = False
    # Otherwise `//` is redirected, to an address that is made of the Host header.
    app.url_map.merge_slashes = False
    app.url_map.converters |= {"path": parsing.Rest, "default": parsing.Identifier}
    app.create_url_adapter = partial(_adapter, app)  # type: ignore[method-assign]
    app.response_class = BareResponse
    parsing.install(app)
    problems.install(app, base_url)
    request_ids.install(app)
    authentication.install(app)
    limits.install(app)
    documented = openapi.install(app, base_url)
    modules = (me, contacts, imports, sales, bookings, jobs, event_kinds, endpoints, deliveries, sweeps, audit_entries)
    for module in (*modules, billing, invoices):
        documented.register_blueprint(module.blueprint, url_prefix="/api/v1")
    for page in (docs, problem_pages, health):
        app.register_blueprint(page.blueprint)


def _adapter(app: Flask, request: Request | None) -> MapAdapter | None:
    """Finds routes by path and method. Flask's own first reads what a request says of its host, which nobody uses."""
    if request is None:
        return None
    # werkzeug reads over slashes at the beginning; a proxy that passes on what begins with /api does not.
    path = NOWHERE if request.environ["PATH_INFO"].startswith("//") else request.path
    return app.url_map.bind("", path_info=path, default_method=request.method)
