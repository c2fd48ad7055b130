"""The rate limit at the door: refuses what is too much, and tells in every response how a token stands.

The headers are those of draft-ietf-httpapi-ratelimit-headers-11.
"""

from __future__ import annotations

from flask import Flask, Response, g

from app.domain import limits
from app.errors import RateLimited


def install(app: Flask) -> None:
    """Tells in the response to every request that was counted."""
    app.after_request(_tell)


def count_request(token_id: str) -> None:
    """Raises RateLimited if the token has no more requests for now."""
    standing = g.standing = limits.count_request(token_id)
    if standing is not None and not standing.is_within:
        raise RateLimited(standing.quota, standing.seconds)


def _tell(response: Response) -> Response:
    standing = g.get("standing")
    if standing is not None:
        response.headers.add("RateLimit-Policy", f'"default";q={standing.quota};w=60')
        response.headers.add("RateLimit", f'"default";r={standing.left};t={standing.seconds}')
    return response
