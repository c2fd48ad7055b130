"""Examples for the OpenAPI document: of fields by name, and of bodies by schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Prefixes of identifiers, by the resource's name in fields, paths and schemas.
PREFIXES: Mapping[str, str] = {
    "workspace": "ws",
    "member": "mem",
    "assignee": "mem",
    "token": "tok",
    "contact": "con",
    "automation": "aut",
    "segment": "seg",
    "broadcast": "bct",
    "run": "run",
    "conversation": "cnv",
    "message": "msg",
    "note": "nte",
    "saved_reply": "srp",
    "macro": "mac",
    "saved_view": "svw",
    "selection": "sel",
    "refused_request": "ref",
    "channel": "chn",
    "endpoint": "whe",
    "event": "evt",
    "delivery": "dlv",
    "sweep": "swp",
    "replay": "rpl",
    "audit_entry": "aud",
    "job": "job",
    "import": "imp",
    "sale": "sal",
    "booking": "bkg",
    "invoice": "inv",
    "upload": "upl",
}
_SUFFIX = "01kaj5bd40e6rr3f5y2kq0w9xz"
_TIME = "2026-11-21T10:00:00.000Z"

# Examples of fields whose type suggests none; `Schema.field` if a name has several meanings.
_FIELDS: Mapping[str, Any] = {
    "external_id": "customer-1042",
    "email": "ada@example.com",
    "phone": "+4930123456",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "locale": "en-GB",
    "timezone": "Europe/London",
    "tags": ["vip"],
    "tag": "vip",
    "custom_fields": {"plan": "gold", "orders": 3},
    "address": "https://shop.example/hooks/bellhop",
    "events": ["contact.created", "tag.added"],
    "kind": "contact.created",
    "kinds": ["contact.created"],
    "statuses": ["failed", "held"],
    "secret": "whsec_" + "0" * 32,
    "since": "2026-11-20T00:00:00.000Z",
    "until": "2026-11-21T00:00:00.000Z",
    "DeliveryWithAttemptsSchema.body": '{"id":"evt_01kaj5bd40e6rr3f5y2kq0w9xz","kind":"contact.created"}',
    "amount": "49.90",
    "currency": "EUR",
    "reference": "order-1042",
    "mentions": [f"mem_{_SUFFIX}"],
    "title": "Fitting",
    "starts_at": "2026-11-23T09:00:00.000Z",
    "ends_at": "2026-11-23T10:00:00.000Z",
    "ActorSchema.id": f"tok_{_SUFFIX}",
    "AttachmentSchema.id": f"upl_{_SUFFIX}",
    "AttemptSchema.duration_ms": 42,
    "AttemptSchema.number": 1,
    "AttemptSchema.status": 200,
    "AuditEntrySchema.detail": {"release_held": True},
    "AuthorSchema.id": f"con_{_SUFFIX}",
    "DeliverySchema.attempts": 1,
    "DeliverySchema.delivered_at": _TIME,
    "DeliverySchema.status": "delivered",
    "EndpointPatch.description": "Events for our warehouse",
    "EndpointPatch.max_per_second": 50,
    "EndpointSchema.max_per_second": 50,
    "EndpointSchema.description": "Events for our warehouse",
    "EventKindSchema.description": "A contact was created.",
    "ExportSchema.events": [{"id": f"evt_{_SUFFIX}", "kind": "contact.created"}],
    "InvoiceSchema.plan": "growth",
    "LineErrorSchema.problem": {"title": "Validation failed", "status": 422, "detail": "Not a valid email address."},
    "PlanSchema.id": "growth",
    "PlanSchema.name": "Growth",
    "ResourceSchema.id": f"con_{_SUFFIX}",
    "ResourceSchema.type": "contact",
    "ResourceSchema.url": f"https://bellhop.example/api/v1/workspaces/ws_{_SUFFIX}/contacts/con_{_SUFFIX}",
    "MessageToContact.to": "+4930123456",
    "TargetSchema.id": f"whe_{_SUFFIX}",
    "TargetSchema.type": "endpoint",
    "TokenSchema.name": "Our shop",
    "WorkspaceSchema.name": "Demo",
    "WorkspaceSettingsSchema.id": f"ws_{_SUFFIX}",
}


class Lacking(LookupError):
    """A field has no example, and its type suggests none."""


def identifier(name: str) -> str | None:
    """Returns an example identifier for `contact` or `contact_id`; None if the name is no resource."""
    prefix = PREFIXES.get(name.removesuffix("_id"))
    return None if prefix is None else f"{prefix}_{_SUFFIX}"


def pattern(name: str) -> str | None:
    """Returns the pattern of the identifiers in a field of that name; None for other fields."""
    prefix = PREFIXES.get(name.removesuffix("_id")) if name.endswith("_id") or name == "workspace" else None
    return None if prefix is None else f"^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$"


def of_field(schema: type, name: str, has_enum: bool = False) -> Any:
    """Returns the example of a schema's field; None if there is none.

    With `has_enum`, skips examples of the field's name alone: the first value of the enumeration serves instead.
    """
    kinds = [kind.__name__ for kind in schema.__mro__]
    for kind in kinds:
        if f"{kind}.{name}" in _FIELDS:
            return _FIELDS[f"{kind}.{name}"]
    if name == "id":
        nouns = [re.sub("(?<!^)(?=[A-Z])", "_", kind.removesuffix("Schema")).lower() for kind in kinds]
        return next(filter(None, map(identifier, nouns)), None)
    return None if has_enum else _FIELDS.get(name, identifier(name) if name.endswith("_id") else None)


def of_schema(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Any:
    """Builds a value for `schema` from its examples. Raises Lacking, naming a field without one."""
    if "$ref" in schema:
        return of_schema(components[schema["$ref"].rpartition("/")[2]], components)
    if "example" in schema:
        return schema["example"]
    for together in ("anyOf", "oneOf"):
        if together in schema:
            return of_schema(schema[together][0], components)
    if "allOf" in schema:
        parts = [of_schema(part, components) for part in schema["allOf"]]
        return {name: value for part in parts for name, value in part.items()} if len(parts) > 1 else parts[0]
    return _of_type(schema, components)


def _of_type(schema: Mapping[str, Any], components: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case [*_, "null"]:
            return None
        case "object":
            return {name: _member(name, inner, components) for name, inner in schema.get("properties", {}).items()}
        case "array":
            item = of_schema(schema["items"], components)
            return [] if item == {} else [item]
        case "boolean":
            return False
        case "integer" | "number":
            return schema.get("default", schema.get("minimum", 0))
        case "string" if schema.get("format") == "date-time":
            return _TIME
    raise Lacking("it has no example")


def _member(name: str, schema: Mapping[str, Any], components: Mapping[str, Any]) -> Any:
    try:
        return of_schema(schema, components)
    except Lacking as error:
        raise Lacking(f"{name}: {error}") from error
