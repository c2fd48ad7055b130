"""Webhook endpoints: the addresses that events are sent to, and the secrets that sign them."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from marshmallow import fields, validate
from peewee import SQL, fn

from app import mailbox
from app.config import settings
from app.database import count, database
from app.domain.deliveries import lanes, replays, sweeps
from app.domain.webhooks import catalogue
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.domain.work.quotas import Quota
from app.errors import Conflict, NotFound
from app.lib import vault
from app.lib.schemas import ResponseBody, about, time
from app.models.endpoints import Endpoint

# How long deliveries are also signed with the previous secret after a rotation.
OVERLAP = "24 hours"
FILTERS = ("statuses", "kinds", "since", "until")  # the fields that select a resend's deliveries
QUOTA = Quota(Endpoint, 1_000, "endpoints")
MOST_PER_SECOND = 1_000  # the highest limit that an endpoint may have, in deliveries
STOPPED = "This endpoint is stopped. Enable it first; stop_reason says why it was stopped."


def new_secret() -> str:
    """Returns a signing secret: `whsec_` and 192 random bits. The whole string is the key."""
    return f"whsec_{secrets.token_urlsafe(24)}"


def create(change: Change) -> Effect:
    """Creates the endpoint from `payload`, sealed secret included. Raises Conflict above the QUOTA."""
    payload = change.payload
    QUOTA.keep(change.workspace_id)
    Endpoint.insert(
        id=change.target,
        workspace_id=change.workspace_id,
        address=payload["address"],
        events=payload["events"],
        description=payload.get("description"),
        max_per_second=payload.get("max_per_second"),
        ordered=payload.get("ordered", False),
        secret=payload["sealed_secret"].encode(),
    ).execute()
    audit.record(change, "endpoint", change.target, payload)
    return Effect("made", "endpoint", change.target)


def update(change: Change) -> Effect:
    """Changes the given fields, also for waiting deliveries. Raises NotFound."""
    _set(change, **change.payload)
    audit.record(change, "endpoint", change.target, change.payload)
    return Effect("changed", "endpoint", change.target)


def rotate_secret(change: Change) -> Effect:
    """Replaces the secret with the sealed one in `payload`.

    For OVERLAP, the previous secret signs too. Drops a previous secret that no key can decrypt, because nothing is sent
    unless both can sign. Raises NotFound.
    """
    endpoint = Endpoint.find(change.workspace_id, change.target)
    readable = vault.is_readable(settings().secret_keys, bytes(endpoint.secret))
    _set(
        change,
        secret=change.payload["sealed_secret"].encode(),
        # The column, not the value read above: another key may have encrypted the secret since.
        previous_secret=Endpoint.secret if readable else None,
        previous_secret_until=SQL("now() + %s::interval", (OVERLAP,)),
    )
    audit.record(change, "endpoint", endpoint.id, {})
    return Effect("changed", "endpoint", endpoint.id)


def test(change: Change) -> Effect:
    """Sends a sample event to this endpoint only. Raises NotFound, and Conflict if it is stopped."""
    endpoint_id, kind = change.payload["endpoint_id"], change.payload["kind"]
    if Endpoint.find(change.workspace_id, endpoint_id).state != "active":
        raise Conflict(f"The endpoint {endpoint_id} is stopped. Enable it first, then test it.")
    delivery_id = change.events.record_for(endpoint_id, kind, catalogue.EVENT_KINDS[kind].sample())
    audit.record(change, "endpoint", endpoint_id, {"kind": kind, "delivery_id": delivery_id})
    # Not "made": a caller who waits gets 200, as for every action on an endpoint.
    return Effect("changed", "delivery", delivery_id)


def delete(change: Change) -> Effect:
    """Marks the endpoint deleted: nothing more is sent. A sweep cancels its unfinished deliveries.

    `drop_deleted` deletes the row later. Raises NotFound.
    """
    _set(change, state="deleted")
    _sweep(change, change.target, "cancel", ["pending", "held"])
    audit.record(change, "endpoint", change.target, {})
    return Effect("deleted", "endpoint", change.target)


def enable(change: Change) -> Effect:
    """Makes the endpoint active and resets its failure count.

    `release_held`: also sends held deliveries. Raises NotFound if the endpoint has been deleted since the write was
    accepted.
    """
    stopped = {"stop_reason": None, "stopped_at": None, "consecutive_failures": 0, "probe_at": None}
    _set(change, state="active", slow_until=None, **stopped)
    release_held = change.payload.get("release_held", False)
    if release_held:
        _sweep(change, change.target, "release", ["held"])
    # Ring for the deliveries that are not held: postponed ones, and ones that no sweep had reached yet.
    database.after_commit(partial(mailbox.ring, lanes.FAST, change.target))
    audit.record(change, "endpoint", change.target, {"release_held": release_held})
    return Effect("changed", "endpoint", change.target)


def create_replay(change: Change) -> Effect:
    """Enables the endpoints in `enable_endpoint_ids`, if any, then calls `replays.create`.

    Adds an audit entry for each endpoint. Raises NotFound if one has been deleted, and Conflict like `replays.create`.
    In both cases, no endpoint is enabled.
    """
    for endpoint_id in change.payload.get("enable_endpoint_ids", ()):
        enable(replace(change, kind="endpoints.enable", resource_id=endpoint_id, payload={}))
    return replays.create(change)


def resend(change: Change) -> Effect:
    """Starts a sweep that resends the deliveries that `payload` selects. The target is the sweep.

    Raises NotFound, and Conflict if the endpoint is stopped.
    """
    filters: dict[str, Any] = {name: change.payload.get(name) for name in FILTERS}
    endpoint = Endpoint.find(change.workspace_id, change.payload["endpoint_id"])
    if endpoint.state != "active":
        raise Conflict(STOPPED)
    times = {name: datetime.fromisoformat(filters[name]) for name in ("since", "until") if filters[name]}
    matched = sweeps.count_matching(endpoint.id, **filters | times)
    _sweep(change, endpoint.id, "resend", matched=matched, sweep_id=change.target, **filters | times)
    audit.record(change, "endpoint", endpoint.id, {"sweep_id": change.target, "count": matched, **filters})
    return Effect("made", "sweep", change.target)


def drop_deleted() -> int:
    """Deletes endpoints marked deleted over an hour ago, without unfinished work; returns how many."""
    return count(
        """
        DELETE FROM endpoints
        WHERE state = 'deleted' AND updated_at < now() - interval '1 hour' AND NOT EXISTS (
            SELECT FROM deliveries WHERE endpoint_id = endpoints.id AND status IN ('pending', 'held')
        ) AND NOT EXISTS (
            SELECT FROM sweeps WHERE endpoint_id = endpoints.id AND due_at IS NOT NULL)
        """
    )


def seal(secret: str) -> str:
    """Returns the secret, encrypted for storage."""
    return vault.encrypt(settings().secret_keys, secret).decode()


class EndpointSchema(ResponseBody):
    id = fields.String()
    address = fields.String()
    events = fields.List(fields.String())
    description = fields.String(allow_none=True)
    state = fields.String(validate=validate.OneOf(["active", "stopped"]))
    stop_reason = fields.String(allow_none=True)
    stopped_at = time("When the endpoint stopped.", allow_none=True)
    consecutive_failures = fields.Integer()
    max_per_second = fields.Integer(allow_none=True, metadata=about("The most deliveries in a second; null: no limit."))
    ordered = fields.Boolean(metadata=about("Whether it gets one delivery at a time, in the order of events."))
    created_at = time("When the endpoint was created.")


represent = EndpointSchema.of


def _set(change: Change, **columns: Any) -> None:
    """Changes the endpoint. Raises NotFound if it has been deleted since the write was accepted."""
    changed = Endpoint.update(**columns, updated_at=fn.now()).where(
        Endpoint.id == change.target, Endpoint.workspace_id == change.workspace_id, Endpoint.state != "deleted"
    )
    if not changed.execute():
        raise NotFound()


def _sweep(change: Change, endpoint_id: str, action: str, statuses: list[str], **options: Any) -> None:
    cause = change.events.cause
    sweeps.begin(change.workspace_id, endpoint_id, action, statuses, cause.trace_id, job_id=cause.job_id, **options)
