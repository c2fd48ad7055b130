"""Describes the webhooks to endpoints: one per kind of event, by the catalogue's samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.api.openapi import examples
from app.domain.webhooks import catalogue

_SAMPLES: Mapping[str, dict[str, Any]] = {
    kind["kind"]: kind["sample"] for kind in catalogue.represent(str(examples.identifier("workspace")))
}
# Resources that the API represents in the same form. A body with all members of one refers to its schema.
_RESOURCES = {
    name.lower(): name for name in ("Contact", "Sale", "Booking", "Conversation", "Message", "Run", "Broadcast")
}


def schemas() -> dict[str, dict[str, Any]]:
    """Returns the schema of each kind's body, their union `WebhookBody`, and `ErasedBody`, by name."""
    of_kinds = {
        name_of(kind): _of_body({"const": kind}, body["data"])
        | {"description": catalogue.EVENT_KINDS[kind].description, "example": body}
        for kind, body in _SAMPLES.items()
    }
    union = {
        "description": "The body of a webhook. More kinds may be added: ignore those that you do not know. Once its "
        "contact has been erased, an event is an ErasedBody.",
        "oneOf": [_reference(kind) for kind in _SAMPLES],
        "discriminator": {"propertyName": "kind", "mapping": {kind: _reference(kind)["$ref"] for kind in _SAMPLES}},
    }
    erased = _of_body({}, {"contact": {"id": examples.identifier("contact")}})
    erased["description"] = "The remainder of an event whose contact has been erased."
    return of_kinds | {"WebhookBody": union, "ErasedBody": erased}


def name_of(kind: str) -> str:
    """Returns the component of a kind's body: `ContactCreatedBody` for `contact.created`."""
    return "".join(part.title() for part in kind.replace(".", "_").split("_")) + "Body"


def webhooks() -> dict[str, Any]:
    """Returns the `webhooks` of the OpenAPI document: the request that an endpoint gets, by kind."""
    return {kind: {"post": _delivery(kind)} for kind in catalogue.EVENT_KINDS}


def _delivery(kind: str) -> dict[str, Any]:
    content = {"schema": _reference(kind), "example": _SAMPLES[kind]}
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


def _reference(kind: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name_of(kind)}"}


def _of_body(kind: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    text = {"type": "string"}
    properties = {
        "id": text,
        "kind": text | kind,
        "created_at": text | {"format": "date-time"},
        "workspace_id": text,
        "data": _object({name: _of_member(name, value) for name, value in data.items()}),
    }
    return _object(properties)


def _of_member(name: str, value: Any) -> dict[str, Any]:
    """Returns the schema of a member of `data`: a reference if the value is a whole resource."""
    if name in _RESOURCES and isinstance(value, dict) and len(value) > 1:
        return {"$ref": f"#/components/schemas/{_RESOURCES[name]}"}
    return _of_value(name, value)


def _of_value(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return _object({inner: _of_value(inner, what) for inner, what in value.items()})
    if isinstance(value, list):
        return {"type": "array", "items": _of_value(name, value[0])}
    if isinstance(value, str):
        return {"type": "string"} | ({"format": "date-time"} if name.endswith("_at") else {})
    return {"type": "boolean" if isinstance(value, bool) else "integer"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _header(name: str, description: str, pattern: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "header", "required": True, "description": description, "schema": schema}
