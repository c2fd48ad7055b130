"""What an endpoint is sent, as the OpenAPI document tells it."""

from __future__ import annotations

from typing import Any

from app.api import examples
from app.domain import catalogue

_SAMPLE = catalogue.represent(str(examples.identifier("workspace")))[0]["sample"]


def delivery() -> dict[str, Any]:
    """The callbacks of the operation that makes an endpoint."""
    described = {
        "operationId": "receive_delivery",
        "summary": "An event, sent to the address of the endpoint.",
        "description": "If it fails, sent again: by default after 1 and 5 minutes, half an hour, 2 and 12 hours.",
        "security": [],
        "parameters": [
            _header(
                "X-Service-Signature",
                "The time of the attempt, and the hex HMAC-SHA256 of that time, a full stop and the raw body, keyed by "
                "the endpoint's secret. For 24 hours after a change of secret there are two `v1`, the new one's first.",
                r"^t=[0-9]+(,v1=[0-9a-f]{64}){1,2}$",
            ),
            _header(
                "X-Service-Delivery",
                "Identifies the delivery; the same in every attempt. Ignore those that you have seen.",
                "^dlv_[0-7][0-9a-hjkmnp-tv-z]{25}$",
            ),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _body(), "example": _SAMPLE}}},
        "responses": {
            "2XX": {"description": "Delivered, where the status line comes in time: by default within 10 seconds."},
            "410": {"description": "Not wanted any more: the endpoint stops."},
            "default": {"description": "Failed, and sent again."},
        },
    }
    return {"delivery": {"{$request.body#/address}": {"post": described}}}


def _header(name: str, description: str, pattern: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "header", "required": True, "description": description, "schema": schema}


def _body() -> dict[str, Any]:
    text = {"type": "string"}
    properties = {
        "id": text,
        "kind": {"type": "string", "enum": list(catalogue.KINDS)},
        "created_at": {"type": "string", "format": "date-time"},
        "workspace_id": text,
        "data": {"type": "object", "description": "What it happened to; webhooks/events has samples."},
    }
    return {"type": "object", "required": list(properties), "properties": properties}
