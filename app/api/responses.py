"""JSON responses, and what their schemas share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Response
from marshmallow import fields
from werkzeug.datastructures import Headers

from app.lib import json

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class BareResponse(Response):
    """A response of which an empty one has no type. Flask makes all responses that are not of this class such ones."""

    default_mimetype = None


class JsonResponse(BareResponse):
    """A response whose body is whole and whose headers, its length too, are ready to be sent."""

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        return self.headers


def respond(status: int, document: object) -> Response:
    """A response that carries `document`, a representation of the domain, as JSON."""
    return JsonResponse(json.dumps(document), status, mimetype="application/json")


def time(description: str, **options: Any) -> fields.DateTime:
    """A time in a response: RFC 3339 in UTC with milliseconds."""
    return fields.DateTime(required=True, metadata={"description": description}, **options)
