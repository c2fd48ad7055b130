"""The table of problems, and the problem documents (RFC 9457) built from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of problem. `detail`: the default of its documents. `remedy`: shown on its own page."""

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
        "Send well-formed JSON in UTF-8. The usual causes are an extra comma, a missing quote or a truncated body.",
    ),
    Problem(
        "unauthenticated",
        401,
        "Authentication required",
        "Send a valid token as 'Authorization: Bearer bhp_…'.",
        "Send a token in the Authorization header. If it has expired or been revoked, ask the administrator of the "
        "workspace for a new one.",
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
        "This address does not support that method. The Allow header lists the methods it supports.",
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
        "Read the other members of the problem: they name what the change conflicts with. Change that or the request.",
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
        "The request is not valid.",
        "Each entry of errors has a pointer (RFC 6901) to a place in the body, a query parameter or a header, and says "
        "what is wrong with it. Nothing was changed.",
    ),
    Problem(
        "idempotency-key-reused",
        422,
        "Idempotency key reused",
        "This Idempotency-Key was used for a different request. Use a new key for a new operation.",
        "Reuse a key only to repeat a request with the same method, path, query and body. Generate a new UUIDv4 for "
        "every new operation.",
    ),
    Problem(
        "rate-limited",
        429,
        "Too many requests",
        "The token has used up its requests for now. Try again after the time in Retry-After.",
        "Wait for the number of seconds in the Retry-After header. The RateLimit header of every response says how "
        "many requests are left.",
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


def problem_document(
    slug: str, detail: str | None, trace_id: str | None = None, *, base_url: str, **extensions: Any
) -> dict[str, Any]:
    """Returns the problem document of `slug`. Raises KeyError for an unknown slug.

    `detail` replaces the default text. `extensions` never replace a standard member.
    """
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
    """Returns the problem document of a domain error, which has a `slug`.

    Any other exception becomes an `internal-error` without detail. `facts` of the error become members of the document,
    and `faults` its `errors`.
    """
    slug = getattr(error, "slug", None)
    if slug not in PROBLEMS or slug == "internal-error":
        return problem_document("internal-error", None, trace_id, base_url=base_url)
    extensions = dict(getattr(error, "facts", {}))
    if slug == "validation-failed":
        faults = getattr(error, "faults", ())
        extensions["errors"] = [{"pointer": fault.pointer, "detail": fault.detail} for fault in faults]
    return problem_document(slug, getattr(error, "detail", None), trace_id, base_url=base_url, **extensions)
