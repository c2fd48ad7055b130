"""Verify a webhook: shows which part of it differs. Pasted text is neither stored nor logged."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from flask import Blueprint, render_template, request

from app.domain.webhooks import verifications
from app.domain.webhooks.verifications import LONGEST_BODY_BYTES, LONGEST_HEADERS, LONGEST_SECRET, MOST_ALIKE, Received
from app.errors import Fault, Invalid
from app.lib import clock, ids
from app.models.endpoints import Endpoint
from app.web.access import page, workspace_id
from app.web.forms import errors_of, typed

blueprint = Blueprint("verify_pages", __name__, url_prefix="/workspaces/<workspace>/settings/developers/verify")

MOST_SUGGESTED = 100
_LAST_SECOND = 2**33
_HEADER = re.compile(r"[\"'\s]*(x-service-[a-z]+)[\"'\s]*[:=]\s*(.*)", re.IGNORECASE)
FIELDS = ("headers", "body", "endpoint", "received_at")


@blueprint.get("")
@page("endpoints.see")
def show() -> str:
    """Shows the form. `endpoint_id` in the address fills in the endpoint."""
    return _page({"endpoint": request.args.get("endpoint_id", "")[:LONGEST_SECRET]})


@blueprint.post("")
@page("endpoints.see")
def verify() -> str | tuple[str, int]:
    """Shows the form with the findings, or with the errors of its fields. Changes nothing."""
    given = typed(*FIELDS)
    try:
        findings = verifications.verify(_received(given, request.form.get("secret", "").strip()))
    except Invalid as error:
        return _page(given, errors=errors_of(error)), 422
    return _page(given, findings)


def _received(given: dict[str, str], secret: str) -> Received:
    body = given["body"].encode()
    for name, size, most in (
        ("headers", len(given["headers"]), LONGEST_HEADERS),
        ("body", len(body), LONGEST_BODY_BYTES),
        ("secret", len(secret), LONGEST_SECRET),
    ):
        if size > most:
            raise Invalid(Fault(f"/{name}", f"This is too long. At most {most:,} bytes are read."))
    headers = _headers(given["headers"])
    return Received(
        workspace_id(),
        headers.get("x-service-signature", ""),
        body,
        headers.get("x-service-delivery", ""),
        _time(given["received_at"].strip()),
        _endpoints(given["endpoint"].strip()),
        secret,
    )


def _headers(text: str) -> dict[str, str]:
    """Parses headers by lower-case name. A text without names counts as the signature."""
    found = {}
    for line in text.splitlines():
        if named := _HEADER.fullmatch(line):
            found[named[1].lower()] = named[2].strip().strip("\"',")
    is_bare = not found and ("t=" in text or "v1=" in text)
    return {"x-service-signature": text.strip()} if is_bare else found


def _endpoints(text: str) -> list[Endpoint]:
    if not text:
        return []
    of_workspace = Endpoint.in_workspace(workspace_id())
    is_it = (Endpoint.id == text) if ids.is_id(text, "whe") else (Endpoint.address == text.replace("\0", ""))
    found = list(of_workspace.where(is_it).order_by(Endpoint.id.desc()).limit(MOST_ALIKE))
    if not found:
        raise Invalid(Fault("/endpoint", "This workspace has no endpoint with that address or identifier."))
    return found


def _time(text: str) -> datetime:
    """Parses Unix seconds or RFC 3339; "" means now. Raises Invalid."""
    if not text:
        return clock.now()
    try:
        if text.isascii() and text.isdigit() and len(text) <= 15 and int(text) < _LAST_SECOND:
            return datetime.fromtimestamp(int(text), UTC)
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(Fault("/received_at", "Give it as 2026-11-21T10:00:00Z or in seconds since 1970.")) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _page(given: dict[str, str], findings: object = None, errors: dict[str, str] | None = None) -> str:
    suggested = Endpoint.in_workspace(workspace_id()).order_by(Endpoint.id.desc()).limit(MOST_SUGGESTED)
    return render_template(
        "verify.html", given=given, findings=findings, errors=errors or {}, suggested=list(suggested)
    )
