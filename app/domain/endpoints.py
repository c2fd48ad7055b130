"""Webhook endpoints: where events go, and the secret that signs them."""

from __future__ import annotations

import secrets
from typing import Any

from peewee import SQL, fn

from app.config import settings
from app.database import count
from app.domain import catalogue
from app.domain.changes import Change, Effect
from app.errors import Conflict, NotFound
from app.lib import ids, vault
from app.models.endpoints import Endpoint

# For so long after a change of secret, deliveries are signed with the one before it too.
OVERLAP = "24 hours"


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
    return Effect("changed", "endpoint", endpoint.id)


def test(change: Change) -> Effect:
    """Sends a sample of a kind to this endpoint alone. Raises NotFound, and Conflict while the endpoint is stopped."""
    endpoint_id, kind = change.payload["endpoint_id"], change.payload["kind"]
    if find(change.workspace_id, endpoint_id).state != "active":
        raise Conflict(f"The endpoint {endpoint_id} is stopped. Enable it first, then test it.")
    delivery_id = change.events.record_for(endpoint_id, kind, catalogue.KINDS[kind].sample())
    # Not "made": who waits gets 200, as from every action on an endpoint.
    return Effect("changed", "delivery", delivery_id)


def delete(change: Change) -> Effect:
    """Marks the endpoint deleted: nothing more goes to it. The scheduler cancels what is left and drops the row."""
    changed = (
        Endpoint.update(state="deleted", updated_at=fn.now())
        .where(Endpoint.id == change.target, Endpoint.workspace_id == change.workspace_id, Endpoint.state != "deleted")
        .execute()
    )
    if not changed:
        raise NotFound()
    return Effect("deleted", "endpoint", change.target)


def drop_deleted() -> int:
    """Removes the rows of endpoints deleted an hour ago that have no unfinished deliveries; returns how many."""
    return count(
        """
        DELETE FROM endpoints
        WHERE state = 'deleted' AND updated_at < now() - interval '1 hour' AND NOT EXISTS (
            SELECT FROM deliveries WHERE endpoint_id = endpoints.id AND status IN ('pending', 'held'))
        """
    )


def find(workspace_id: str, endpoint_id: str) -> Endpoint:
    """Raises NotFound."""
    endpoint = None
    if ids.is_id(endpoint_id, "whe"):
        endpoint = Endpoint.in_workspace(workspace_id).where(Endpoint.id == endpoint_id).first()
    if endpoint is None:
        raise NotFound()
    return endpoint  # type: ignore[no-any-return]


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
