"""The table of problems, and the documents (RFC 9457) that tell of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of problem: `detail` is said where nothing closer is known, `remedy` on the page that explains it."""

    slug: str
    status: int
    title: str
    detail: str
    remedy: str


_ALL = (
    Problem(
        "malformed-request",
        400,
        "Malformed request",
        "The request could not be read.",
        "Send well-formed JSON in UTF-8. A comma too many, a missing quote or a body cut short are the usual causes.",
    ),
    Problem(
        "unauthenticated",
        401,
        "Authentication required",
        "Send a valid token as 'Authorization: Bearer bhp_…'.",
        "Send a token in the Authorization header. If it has expired or been revoked, ask whoever gave it to you for a "
        "new one.",
    ),
    Problem(
        "insufficient-scope",
        403,
        "Insufficient scope",
        "The token does not have the access that this operation needs.",
        "Use a token that has the restriction named in the detail, or an unrestricted one.",
    ),
    Problem(
        "not-found",
        404,
        "Not found",
        "There is nothing here. Check the identifier and the workspace.",
        "Check the path, the identifier and its prefix, and that the token belongs to the workspace in the path.",
    ),
    Problem(
        "method-not-allowed",
        405,
        "Method not allowed",
        "This address does not answer that method. The Allow header lists those it does.",
        "Use one of the methods in the Allow header of the response.",
    ),
    Problem(
        "automation-not-published",
        409,
        "Automation not published",
        "The automation is not published.",
        "Publish the automation, then start it again.",
    ),
    Problem(
        "conflict",
        409,
        "Conflict",
        "The change conflicts with something that exists.",
        "Read the other members of the problem: they name what is in the way. Change that or the request.",
    ),
    Problem(
        "payload-too-large",
        413,
        "Payload too large",
        "The body is larger than 256 KiB.",
        "Send at most 256 KiB in one request; split larger work into several.",
    ),
    Problem(
        "unsupported-media-type",
        415,
        "Unsupported media type",
        "The body must be JSON: send it with 'Content-Type: application/json'.",
        "Send the body as uncompressed JSON with the header Content-Type: application/json.",
    ),
    Problem(
        "validation-failed",
        422,
        "Validation failed",
        "The request is not valid. Each entry of 'errors' names a place in it.",
        "Each entry of errors has a pointer (RFC 6901) to a place in the body, or to a query parameter, and says what "
        "is wrong there. Nothing was changed.",
    ),
    Problem(
        "idempotency-key-reused",
        422,
        "Idempotency key reused",
        "This Idempotency-Key was used for a different request. Use a new key for a new operation.",
        "Repeat a request with the same key only if method, path, query and body are the same. Make a new UUIDv4 for "
        "every new operation.",
    ),
    Problem(
        "rate-limited",
        429,
        "Too many requests",
        "The token has used up its requests for now. Try again after the time in Retry-After.",
        "Wait for the number of seconds in the Retry-After header. The RateLimit headers of every response say how "
        "much is left.",
    ),
    Problem(
        "internal-error",
        500,
        "Internal error",
        "Something went wrong on our side. Keep the traceId and send it to support.",
        "Try again with the same Idempotency-Key. If it happens again, send the traceId to support.",
    ),
    Problem(
        "unavailable",
        503,
        "Service unavailable",
        "The service cannot use its database at this moment. Try again shortly.",
        "Try again, with the same Idempotency-Key, after the number of seconds in the Retry-After header.",
    ),
)

PROBLEMS = {problem.slug: problem for problem in _ALL}

# By name, so that this module knows nothing of the rest.
SLUG_OF_ERROR = {
    "NotFound": "not-found",
    "Unauthenticated": "unauthenticated",
    "InsufficientScope": "insufficient-scope",
    "AutomationNotPublished": "automation-not-published",
    "Conflict": "conflict",
    "IdempotencyKeyReused": "idempotency-key-reused",
    "RateLimited": "rate-limited",
    "Unavailable": "unavailable",
    "Invalid": "validation-failed",
}


def problem_document(
    slug: str, detail: str | None, trace_id: str | None = None, *, base_url: str, **extensions: Any
) -> dict[str, Any]:
    """The problem document of `slug`; without a `trace_id` it has no `traceId`. Raises KeyError for an unknown slug."""
    problem = PROBLEMS[slug]
    document: dict[str, Any] = {
        "type": f"{base_url}/problems/{slug}",
        "title": problem.title,
        "status": problem.status,
        "detail": detail or problem.detail,
    }
    if trace_id is not None:
        document["traceId"] = trace_id
    return document | {name: value for name, value in extensions.items() if name not in document}


def problem_of_error(error: Exception, trace_id: str | None = None, *, base_url: str) -> dict[str, Any]:
    """The problem document of a domain error; of any other exception one that shows nothing of it."""
    slug = slug_of(error)
    if slug is None:
        return problem_document("internal-error", None, trace_id, base_url=base_url)
    extensions = dict(getattr(error, "facts", {}))
    if slug == "validation-failed":
        extensions["errors"] = _errors(getattr(error, "faults", ()))
    return problem_document(slug, getattr(error, "detail", None), trace_id, base_url=base_url, **extensions)


def slug_of(error: Exception) -> str | None:
    """The slug of a domain error, judged by the nearest of its classes; None for any other exception."""
    names = [kind.__name__ for kind in type(error).__mro__]
    if "BellhopError" not in names:  # werkzeug and others have a NotFound of their own
        return None
    return next((SLUG_OF_ERROR[name] for name in names if name in SLUG_OF_ERROR), None)


def _errors(faults: Iterable[Any]) -> list[dict[str, str]]:
    return [{"pointer": fault.pointer, "detail": fault.detail} for fault in faults]
