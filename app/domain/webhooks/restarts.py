"""Restarts: enables stopped endpoints and replays their deliveries, in one write."""

from __future__ import annotations

from dataclasses import replace

from app.domain.deliveries import replays
from app.domain.webhooks import endpoints
from app.domain.work.changes import Change, Effect


def create(change: Change) -> Effect:
    """Enables the endpoints in `enable_endpoint_ids`, if any, then calls `replays.create`.

    Adds an audit entry for each endpoint. Raises NotFound if one has been deleted, and Conflict like `replays.create`.
    In both cases, no endpoint is enabled.
    """
    for endpoint_id in change.payload.get("enable_endpoint_ids", ()):
        endpoints.enable(replace(change, kind="endpoints.enable", resource_id=endpoint_id, payload={}))
    return replays.create(change)
