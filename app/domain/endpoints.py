"""Webhook endpoints: where events go, and the secret that signs them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from peewee import SQL, fn

from app import mailbox
from app.config import settings
from app.database import count, database
from app.domain import audit, catalogue, lanes, sweeps
from app.domain.changes import Change, Effect
from app.errors import Conflict, NotFound
from app.lib import vault
from app.models.endpoints import Endpoint

# For so long after a change of secret, deliveries are signed with the one before it too.
OVERLAP = "24 hours"
FILTERS = ("statuses", "kinds", "since", "until")  # of a resend
STOPPED = "This endpoint is stopped. Enable it first; stop_reason says why it was stopped."


def new_secret() -> str:
    """A signing secret: `whsec_` and 192 random bits. The whole string is the key."""
    return f"whsec_{secrets.token_urlsafe(24)}"


def create(change: Change) -> Effect:
    """Makes the endpoint; `payload` has address, events, description and the sealed secret."""
    payload = change.payload
    Endpoint.insert(
        id=change.target,
        workspace_id=change.workspace_id,
        address=payload["address"],
        events=payload["events"],
        description=payload.get("description"),
        secret=payload["sealed_secret"].encode(),
    ).execute()
    audit.record(change, "endpoint", change.target, _shown(payload))
    return Effect("made", "endpoint", change.target)


def update(change: Change) -> Effect:
    """Changes the fields that are given. Raises NotFound if it has been deleted since the write was accepted."""
    changed = (
        Endpoint.update(**change.payload, updated_at=fn.now())
        .where(Endpoint.id == change.target, Endpoint.workspace_id == change.workspace_id, Endpoint.state != "deleted")
        .execute()
    )
    if not changed:
        raise NotFound()
    audit.record(change, "endpoint", change.target, _shown(change.payload))
    return Effect("changed", "endpoint", change.target)


def rotate_secret(change: Change) -> Effect:
    """Signs with the sealed secret of `payload` from now on, and for a while with the one until now too.

    One that cannot be read any more is not kept: nothing goes out while one of the two cannot sign. Raises NotFound.
    """
    endpoint = find(change.workspace_id, change.target)
    readable = vault.is_readable(settings().secret_keys, bytes(endpoint.secret))
    Endpoint.update(
        secret=change.payload["sealed_secret"].encode(),
        # The column and not what was read: it may be under another key by now.
        previous_secret=Endpoint.secret if readable else None,
        previous_secret_until=SQL("now() + %s::interval", (OVERLAP,)),
        updated_at=fn.now(),
    ).where(Endpoint.id == endpoint.id).execute()
    audit.record(change, "endpoint", endpoint.id, {})
    return Effect("changed", "endpoint", endpoint.id)


def test(change: Change) -> Effect:
    """Sends a sample of a kind to this endpoint alone. Raises NotFound, and Conflict while the endpoint is stopped."""
    endpoint_id, kind = change.payload["endpoint_id"], change.payload["kind"]
    if find(change.workspace_id, endpoint_id).state != "active":
        raise Conflict(f"The endpoint {endpoint_id} is stopped. Enable it first, then test it.")
    delivery_id = change.events.record_for(endpoint_id, kind, catalogue.KINDS[kind].sample())
    audit.record(change, "endpoint", endpoint_id, {"kind": kind, "delivery_id": delivery_id})
    # Not "made": who waits gets 200, as from every action on an endpoint.
    return Effect("changed", "delivery", delivery_id)


def delete(change: Change) -> Effect:
    """Marks the endpoint deleted: nothing more goes to it. A sweep cancels what is left, and the row goes later."""
    changed = (
        Endpoint.update(state="deleted", updated_at=fn.now())
        .where(Endpoint.id == change.target, Endpoint.workspace_id == change.workspace_id, Endpoint.state != "deleted")
        .execute()
    )
    if not changed:
        raise NotFound()
    _sweep(change, change.target, "cancel", ["pending", "held"])
    audit.record(change, "endpoint", change.target, {})
    return Effect("deleted", "endpoint", change.target)


def enable(change: Change) -> Effect:
    """Lets deliveries go to the endpoint again, as if it had never failed; with `release_held` the held ones too.

    Raises NotFound if it has been deleted since the write was accepted.
    """
    changed = (
        Endpoint.update(
            state="active",
            stop_reason=None,
            stopped_at=None,
            consecutive_failures=0,
            answered=False,
            slow_until=None,
            updated_at=fn.now(),
        )
        .where(Endpoint.id == change.target, Endpoint.workspace_id == change.workspace_id, Endpoint.state != "deleted")
        .execute()
    )
    if not changed:
        raise NotFound()
    release_held = change.payload.get("release_held", False)
    if release_held:
        _sweep(change, change.target, "release", ["held"])
    # For what has not been held yet, or was put off.
    database.after_commit(partial(mailbox.ring, lanes.FAST, change.target))
    audit.record(change, "endpoint", change.target, {"release_held": release_held})
    return Effect("changed", "endpoint", change.target)


def resend(change: Change) -> Effect:
    """Begins to send once more what `payload` chooses of the deliveries to its `endpoint_id`; the target is the sweep.

    Raises NotFound, and Conflict while the endpoint is stopped.
    """
    filters: dict[str, Any] = {name: change.payload.get(name) for name in FILTERS}
    endpoint = find(change.workspace_id, change.payload["endpoint_id"])
    if endpoint.state != "active":
        raise Conflict(STOPPED)
    times = {name: datetime.fromisoformat(filters[name]) for name in ("since", "until") if filters[name]}
    matched = sweeps.count_matching(endpoint.id, **filters | times)
    _sweep(change, endpoint.id, "resend", matched=matched, sweep_id=change.target, **filters | times)
    audit.record(change, "endpoint", endpoint.id, {"sweep_id": change.target, "count": matched, **filters})
    return Effect("made", "sweep", change.target)


def drop_deleted() -> int:
    """Removes the rows of endpoints deleted an hour ago whose deliveries and sweeps have ended; returns how many."""
    return count(
        """
        DELETE FROM endpoints
        WHERE state = 'deleted' AND updated_at < now() - interval '1 hour' AND NOT EXISTS (
            SELECT FROM deliveries WHERE endpoint_id = endpoints.id AND status IN ('pending', 'held')
        ) AND NOT EXISTS (
            SELECT FROM sweeps WHERE endpoint_id = endpoints.id AND due_at IS NOT NULL)
        """
    )


def find(workspace_id: str, endpoint_id: str) -> Endpoint:
    """Raises NotFound."""
    return Endpoint.get_in(workspace_id, endpoint_id, "whe")


def seal(secret: str) -> str:
    """The secret as the database keeps it."""
    return vault.encrypt(settings().secret_keys, secret).decode()


def represent(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "address": endpoint.address,
        "events": endpoint.events,
        "description": endpoint.description,
        "state": endpoint.state,
        "stop_reason": endpoint.stop_reason,
        "stopped_at": endpoint.stopped_at,
        "consecutive_failures": endpoint.consecutive_failures,
        "created_at": endpoint.created_at,
    }


def _sweep(change: Change, endpoint_id: str, action: str, statuses: list[str], **options: Any) -> None:
    cause = change.events.cause
    sweeps.begin(change.workspace_id, endpoint_id, action, statuses, cause.trace_id, job_id=cause.job_id, **options)


def _shown(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What the audit log says of a change: all but the secret."""
    return {name: value for name, value in payload.items() if name != "sealed_secret"}
