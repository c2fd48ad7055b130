"""Headers and parameters that operations share, described once."""

from __future__ import annotations

from typing import Any

_UUID_V4 = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"

# Sent only to requests with a valid token.
LIMITS = ("RateLimit-Policy", "RateLimit")

HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "Identifies the request; equal to the traceId of a problem.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    },
    "Location": {
        "description": "Address of the job (202) or of the new resource (201).",
        "required": True,
        "schema": {"type": "string", "format": "uri"},
    },
    "Preference-Applied": {
        "description": "The preference that was honoured (RFC 7240), such as `wait=10`.",
        "schema": {"type": "string"},
    },
    "Idempotent-Replayed": {
        "description": "`true` if this is the response to an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {
        "description": "Seconds to wait before trying again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": 'The authentication scheme: `Bearer`, with `error="invalid_token"` if a token was sent.',
        "required": True,
        "schema": {"type": "string"},
    },
    "Allow": {
        "description": "The methods that the address supports.",
        "required": True,
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "How many requests (`q`) a token may make in how many seconds (`w`).",
        "schema": {"type": "string"},
        "example": '"default";q=6000;w=60',
    },
    "RateLimit": {
        "description": "How many requests the token may make now (`r`), and in how many seconds one is added (`t`).",
        "schema": {"type": "string"},
        "example": '"default";r=5999;t=1',
    },
}

PARAMETERS: dict[str, dict[str, Any]] = {
    "Prefer": {
        "description": "`wait=N`: respond with the result if the write ends within N seconds (RFC 7240). More than 30 "
        "counts as 30, a fraction is rounded down, and a value that is no number is ignored.",
        "schema": {"type": "string"},
        "example": "wait=10",
    },
    "Idempotency-Key": {
        "description": "A UUIDv4, new for each operation. Within 24 hours the same request with the same key gets the "
        "same job and does nothing else.",
        # No example: tools would send it with two different requests, and the second one would be refused.
        "schema": {"type": "string", "pattern": _UUID_V4},
    },
    "X-Request-Id": {
        "description": "The caller's own identifier of the request, kept if it is 1 to 128 of `A-Za-z0-9._-`.",
        "schema": {"type": "string"},
    },
}


def header_references(*names: str) -> dict[str, dict[str, str]]:
    """Returns references to shared headers, by name."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
