"""The public HTTP API: translates requests into domain verbs, and their results into responses."""

from __future__ import annotations

from flask import Flask

from app.api import (
    audit_entries,
    authentication,
    automations,
    billing,
    bookings,
    channels,
    chat_scripts,
    chats,
    contacts,
    conversations,
    deliveries,
    docs,
    endpoints,
    event_kinds,
    events,
    health,
    imports,
    invoices,
    jobs,
    limits,
    me,
    media,
    openapi,
    parsing,
    problem_pages,
    problems,
    replays,
    request_ids,
    runs,
    sales,
    sweeps,
    workspaces,
)
from app.api.parsing import paths
from app.api.responses import BareResponse


def install(app: Flask, base_url: str) -> None:
    """Adds to `app` everything under /api/v1, the documentation, the problem pages and the health checks."""
    app.response_class = BareResponse
    parsing.install(app)
    problems.install(app, base_url)
    request_ids.install(app)
    authentication.install(app)
    limits.install(app)
    documented = openapi.install(app, base_url)
    modules = (me, contacts, imports, sales, bookings, channels, jobs, event_kinds, endpoints, events, deliveries)
    for module in (*modules, automations, runs, workspaces, sweeps, replays, audit_entries, billing, invoices):
        documented.register_blueprint(module.blueprint, url_prefix="/api/v1")
    for name, schema in conversations.SCHEMAS.items():
        documented.spec.components.schema(name, schema=schema)
    paths.shorten(app)
    for page in (docs, problem_pages, health, media, chats, chat_scripts):
        app.register_blueprint(page.blueprint)
