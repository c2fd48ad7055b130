"""Responses: JSON, ready to be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response
from werkzeug.datastructures import Headers

from app.lib import json

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class BareResponse(Response):
    """A response that has no Content-Type unless it is given one: 204 and OPTIONS have no body to describe."""

    default_mimetype = None


class JsonResponse(BareResponse):
    """A response whose headers are complete when it is created: the body is one string, and `Location` is absolute."""

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        """The headers as they are: werkzeug would copy them and resolve addresses (decision 18)."""
        return self.headers


def respond(status: int, document: object) -> Response:
    """A JSON response with `document` as its body."""
    return JsonResponse(json.dumps(document), status, mimetype="application/json")
