"""Describes the deliveries to endpoints, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from app.api.openapi import event_schemas
from app.domain.webhooks import catalogue


def webhooks() -> dict[str, Any]:
    """Returns the requests to receivers, by kind of event."""
    return {kind: {"post": _delivery(kind)} for kind in catalogue.EVENT_KINDS}


def _delivery(kind: str) -> dict[str, Any]:
    content = {"schema": event_schemas.reference(kind), "example": event_schemas.sample(kind)}
    return {
        "operationId": f"receive_{kind.replace('.', '_')}",
        "summary": catalogue.EVENT_KINDS[kind].description,
        "description": "Sent to the address of every endpoint that is subscribed to the kind. A failed delivery is "
        "retried, by default after 1 and 5 minutes, half an hour, 2 and 12 hours.",
        "security": [],
        "parameters": [
            _header(
                "X-Service-Signature",
                "The time of the attempt, and the hex HMAC-SHA256 of that time, a full stop and the raw body, keyed by "
                "the endpoint's secret. For 24 hours after a rotation there are two `v1`, the new secret's first.",
                r"^t=[0-9]+(,v1=[0-9a-f]{64}){1,2}$",
            ),
            _header(
                "X-Service-Delivery",
                "Identifies the delivery; the same in every attempt. Ignore a delivery that you have already seen.",
                "^dlv_[0-7][0-9a-hjkmnp-tv-z]{25}$",
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "2XX": {"description": "Delivered, if the status line arrives in time: by default within 10 seconds."},
            "410": {"description": "Gone: the endpoint stops."},
            "default": {"description": "Failed; the delivery is retried."},
        },
    }


def _header(name: str, description: str, pattern: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "header", "required": True, "description": description, "schema": schema}
