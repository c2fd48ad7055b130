"""JSON responses, and what their schemas share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Response
from marshmallow import fields
from werkzeug.datastructures import Headers

from app.lib import json

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class JsonResponse(Response):
    """A response whose body is whole and whose headers, its length too, are ready to be sent."""

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        return self.headers


class EmptyResponse(Response):
    """A response without a body, and so without a type of one."""

    default_mimetype = None


def respond(status: int, document: object) -> Response:
    """A response that carries `document`, a representation of the domain, as JSON."""
    return JsonResponse(json.dumps(document), status, mimetype="application/json")


def time(description: str, **options: Any) -> fields.DateTime:
    """A time in a response: RFC 3339 in UTC with milliseconds."""
    return fields.DateTime(required=True, metadata={"description": description}, **options)
