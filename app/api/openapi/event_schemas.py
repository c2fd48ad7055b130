"""Schemas of event bodies, one per kind of event, derived from the catalogue's samples."""

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
        "oneOf": [reference(kind) for kind in _SAMPLES],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {kind: reference(kind)["$ref"] for kind in _SAMPLES},
        },
    }
    erased = _of_body({}, {"contact": {"id": examples.identifier("contact")}})
    erased["description"] = "The remainder of an event whose contact has been erased."
    return of_kinds | {"WebhookBody": union, "ErasedBody": erased}


def name_of(kind: str) -> str:
    """Returns the component of a kind's body: `ContactCreatedBody` for `contact.created`."""
    return "".join(part.title() for part in kind.replace(".", "_").split("_")) + "Body"


def reference(kind: str) -> dict[str, str]:
    """Returns a reference to the schema of a kind's body."""
    return {"$ref": f"#/components/schemas/{name_of(kind)}"}


def sample(kind: str) -> dict[str, Any]:
    """Returns a complete body of the kind."""
    return _SAMPLES[kind]


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
