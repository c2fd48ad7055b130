"""JSON responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Response
from werkzeug.datastructures import Headers

from app.lib import json

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class BareResponse(Response):
    """A response without a default Content-Type, because 204 and OPTIONS have no body."""

    default_mimetype = None


class JsonResponse(BareResponse):
    """A response whose headers are final when it is created: one string as body, absolute `Location`."""

    def get_wsgi_headers(self, environ: WSGIEnvironment) -> Headers:
        """Returns the headers unchanged: werkzeug would copy them and resolve addresses (decision 18)."""
        return self.headers


def respond(status: int, document: object) -> Response:
    """Returns a JSON response with `document` as its body."""
    return JsonResponse(json.dumps(document), status, mimetype="application/json")
