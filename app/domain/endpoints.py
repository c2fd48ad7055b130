"""Webhook endpoints: where events go, the secret that signs them, and when an endpoint is stopped."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import structlog
from peewee import fn

from app.config import settings
from app.database import count
from app.domain.changes import Change, Effect
from app.errors import NotFound
from app.lib import clock, ids, vault
from app.models.endpoints import Endpoint
from app.outbound import Answer

log = structlog.get_logger(__name__)


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
        .where(Endpoint.id == change.target, Endpoint.workspace_id == change.workspace_id)
        .execute()
    )
    if not changed:
        raise NotFound()
    return Effect("changed", "endpoint", change.target)


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


def count_outcomes(outcomes: Sequence[tuple[str, Answer]]) -> dict[str, str]:
    """Counts completed attempts, (endpoint, answer) in their order, and stops endpoints that have failed too often.

    Runs inside the transaction that records the attempts. Returns the state of each endpoint that failed at least
    once; an endpoint that is not active any more is not counted further.
    """
    failing = sorted({endpoint_id for endpoint_id, answer in outcomes if not answer.ok})
    states: dict[str, str] = {}
    for endpoint in Endpoint.locked(failing) if failing else []:
        _count(endpoint, [answer for endpoint_id, answer in outcomes if endpoint_id == endpoint.id])
        states[endpoint.id] = endpoint.state
    _reset({endpoint_id for endpoint_id, _ in outcomes} - set(failing))
    return states


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


def _count(endpoint: Endpoint, answers: Sequence[Answer]) -> None:
    before, threshold = endpoint.consecutive_failures, settings().stop_after_failures
    for answer in answers:
        if endpoint.state != "active":
            break
        endpoint.consecutive_failures = 0 if answer.ok else endpoint.consecutive_failures + 1
        if answer.status == 410:
            _stop(endpoint, "The receiver answered 410 Gone.")
        elif endpoint.consecutive_failures >= threshold:
            _stop(endpoint, f"{threshold} attempts in a row failed. The last: {answer.error}")
    if endpoint.consecutive_failures != before or endpoint.dirty_fields:
        endpoint.save(only=endpoint.dirty_fields)


def _stop(endpoint: Endpoint, reason: str) -> None:
    endpoint.state, endpoint.stop_reason, endpoint.stopped_at = "stopped", reason, clock.now()
    log.warning("endpoint.stopped", endpoint=endpoint.id, reason=reason)


def _reset(succeeding: set[str]) -> None:
    # Touches a row only where the count is not 0, so that healthy endpoints do not fight for theirs.
    count(
        """
        UPDATE endpoints SET consecutive_failures = 0 WHERE id IN (
            SELECT id FROM endpoints WHERE id = ANY(%s) AND consecutive_failures > 0 AND state = 'active'
            ORDER BY id FOR NO KEY UPDATE)
        """,
        (list(succeeding),),
    )
