"""Bellhop's expected errors. Each carries the slug of its problem; only the edges know status codes."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_FAULTS = 100


class BellhopError(Exception):
    """Any expected refusal. `detail` is a sentence for the caller; `slug` names an entry of the table of problems."""

    slug = "internal-error"
    detail = "The operation failed."

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or self.detail
        super().__init__(self.detail)


class SettingsError(BellhopError):
    """A setting is missing or wrong; `detail` names it. Only operators see this error."""

    slug = "internal-error"


class Malformed(BellhopError):
    """The request cannot be read; `detail` says where."""

    slug = "malformed-request"
    detail = "The request could not be read."


class TooLarge(BellhopError):
    """The request is larger than its limit, which `detail` names."""

    slug = "payload-too-large"


class NotFound(BellhopError):
    """The workspace has no such resource."""

    slug = "not-found"
    detail = "There is nothing here. Check the identifier and the workspace."


class Unauthenticated(BellhopError):
    """The token is missing, wrong, expired or revoked."""

    slug = "unauthenticated"
    detail = "Send a valid token as 'Authorization: Bearer bhp_…'."


class InsufficientScope(BellhopError):
    """The token's restrictions do not cover the operation."""

    slug = "insufficient-scope"


class Conflict(BellhopError):
    """The change conflicts with the current state. `facts` are extra members of the problem."""

    slug = "conflict"

    def __init__(self, detail: str, **facts: str) -> None:
        super().__init__(detail)
        self.facts = facts


class AutomationNotPublished(BellhopError):
    """The automation is a draft or unpublished, so nothing can be started."""

    slug = "automation-not-published"
    detail = "This automation is not published. Publish it first."


class IdempotencyKeyReused(BellhopError):
    """The same token has used the key for a different request."""

    slug = "idempotency-key-reused"
    detail = "This Idempotency-Key was used for a different request. Use a new key for a new operation."


class RateLimited(BellhopError):
    """The token's bucket is empty. The next request is served in `retry_after_seconds`."""

    slug = "rate-limited"

    def __init__(self, per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(f"This token may make {per_minute:,} requests a minute. Try again in {retry_after_seconds} s.")
        self.retry_after_seconds = retry_after_seconds


class TooMuchStored(BellhopError):
    """Too many bytes of files were stored within an hour, which ends in `retry_after_seconds`."""

    slug = "rate-limited"

    def __init__(self, retry_after_seconds: int) -> None:
        minutes = math.ceil(retry_after_seconds / 60)
        super().__init__(f"Too many large files were sent within an hour. Try again in {minutes} min.")
        self.retry_after_seconds = retry_after_seconds


class TooManyStreams(BellhopError):
    """The caller has as many live streams as it may have, or opens them too fast."""

    slug = "rate-limited"

    def __init__(self, detail: str, retry_after_seconds: int) -> None:
        super().__init__(f"{detail} Try again in {retry_after_seconds} s.")
        self.retry_after_seconds = retry_after_seconds


class SignInRefused(BellhopError):
    """Address and password are not those of an account. Which of them is wrong is not told."""

    slug = "unauthenticated"
    detail = "This e-mail address and password do not match."


class SignInThrottled(BellhopError):
    """Too many attempts to sign in have failed. The next counts again in `retry_after_seconds`."""

    slug = "rate-limited"

    def __init__(self, retry_after_seconds: int) -> None:
        minutes = -(-retry_after_seconds // 60)
        in_time = "a minute" if minutes == 1 else f"{minutes} minutes"
        super().__init__(f"Too many attempts to sign in have failed. Try again in {in_time}.")
        self.in_general = f"Too many attempts from here. Try again in {in_time}."
        self.retry_after_seconds = retry_after_seconds


class Unavailable(BellhopError):
    """The database cannot be reached or the service is overloaded; the caller may retry.

    `facts` are extra members of the problem.
    """

    slug = "unavailable"
    detail = "The service cannot use its database at this moment. Try again shortly."

    def __init__(self, detail: str | None = None, **facts: object) -> None:
        super().__init__(detail)
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Fault:
    """One invalid place in a request: `pointer` is an RFC 6901 pointer into the body ('' for the whole body)."""

    pointer: str
    detail: str


class Invalid(BellhopError):
    """The request is well-formed but not acceptable.

    `faults` lists the invalid places, up to MAX_FAULTS; `detail` is the first, and counts the others.
    """

    slug = "validation-failed"

    def __init__(self, first: Fault, *others: Fault) -> None:
        detail = f"{first.pointer.removeprefix('/')}: {first.detail}" if first.pointer else first.detail
        if others:
            faults = "fault" if len(others) == 1 else "faults"
            detail = f"{detail.removesuffix('.')} … and {len(others)} more {faults}"
        super().__init__(detail)
        self.faults = (first, *others)[:MAX_FAULTS]


def first_line(error: Exception) -> str:
    """The first line of what the error says."""
    return (str(error).strip().splitlines() or ["no response"])[0]
