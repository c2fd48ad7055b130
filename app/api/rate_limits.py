"""Enforces the rate limit, and reports it (draft-ietf-httpapi-ratelimit-headers-11)."""

from __future__ import annotations

from flask import Response, g

from app.domain.people import rate_limits
from app.errors import RateLimited


def count_request(token_id: str) -> None:
    """Counts a request for the token. Raises RateLimited if none are left."""
    standing = g.standing = rate_limits.count_request(token_id)
    if standing is not None and not standing.is_within:
        raise RateLimited(standing.quota, standing.seconds)


def report(response: Response) -> Response:
    """Adds the RateLimit headers to the response, if the request was counted."""
    standing = g.get("standing")
    if standing is not None:
        response.headers.add("RateLimit-Policy", f'"default";q={standing.quota};w=60')
        response.headers.add("RateLimit", f'"default";r={standing.left};t={standing.seconds}')
    return response
