"""JSON responses, and what their schemas share."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields

from app.lib import json


def respond(status: int, document: object) -> Response:
    """A response that carries `document`, a representation of the domain, as JSON."""
    return Response(json.dumps(document), status, mimetype="application/json")


def time(description: str, **options: Any) -> fields.DateTime:
    """A time in a response: RFC 3339 in UTC with milliseconds."""
    return fields.DateTime(required=True, metadata={"description": description}, **options)
