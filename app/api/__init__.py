"""The public HTTP API: translates requests into domain verbs, and their results into responses."""

from __future__ import annotations

from flask import Flask

from app.api import (
    audit_entries,
    authentication,
    automations,
    billing,
    bookings,
    broadcasts,
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
    hooks,
    imports,
    invoices,
    jobs,
    macros,
    me,
    media,
    members,
    messages,
    notes,
    openapi,
    parsing,
    problem_pages,
    problems,
    rate_limits,
    replays,
    reports,
    request_ids,
    runs,
    sales,
    saved_replies,
    segments,
    sweeps,
    uploads,
    workspaces,
)
from app.api.parsing import paths
from app.api.responses import BareResponse


def install(app: Flask, base_url: str) -> None:
    """Registers everything under /api/v1, the documentation, the problem pages and the health checks."""
    app.response_class = BareResponse
    parsing.install(app)
    problems.install(app, base_url)
    request_ids.install(app)
    authentication.install(app)
    app.after_request(rate_limits.report)
    documented = openapi.install(app, base_url)
    modules = (me, contacts, segments, imports, sales, bookings, jobs, event_kinds, endpoints, events, deliveries)
    inbox = (channels, conversations, messages, notes, saved_replies, macros, uploads, members, reports)
    further = (sweeps, replays, audit_entries, billing, invoices)
    for module in (*modules, *inbox, automations, runs, broadcasts, workspaces, *further):
        documented.register_blueprint(module.blueprint, url_prefix="/api/v1")
    paths.shorten(app)
    for page in (docs, problem_pages, health, hooks, media, chats, chat_scripts):
        app.register_blueprint(page.blueprint)
