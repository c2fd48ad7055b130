"""What can go wrong in Bellhop's own terms; the edges decide how to say it to a caller."""

from __future__ import annotations

from dataclasses import dataclass


class BellhopError(Exception):
    """Any expected refusal. `detail` is a sentence for the person who called."""

    detail = "The operation failed."

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or self.detail
        super().__init__(self.detail)


class SettingsError(BellhopError):
    """A setting is missing or wrong; names it."""


class NotFound(BellhopError):
    """There is no such thing in this workspace."""

    detail = "There is nothing here. Check the identifier and the workspace."


class Unauthenticated(BellhopError):
    """No token, or one that is wrong, expired or revoked."""

    detail = "Send a valid token as 'Authorization: Bearer bhp_…'."


class InsufficientScope(BellhopError):
    """The token is restricted and lacks what the operation needs."""


class Conflict(BellhopError):
    """The change breaks a rule of uniqueness. `facts` are extra members of the problem."""

    def __init__(self, detail: str, **facts: str) -> None:
        super().__init__(detail)
        self.facts = facts


class IdempotencyKeyReused(BellhopError):
    """The key has been used by this token for another request."""

    detail = "This Idempotency-Key was used for a different request. Use a new key for a new operation."


class RateLimited(BellhopError):
    """The token has used up its requests for now; `retry_after_seconds` is when the next will be served."""

    def __init__(self, per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(f"This token may make {per_minute:,} requests a minute. Try again in {retry_after_seconds} s.")
        self.retry_after_seconds = retry_after_seconds


class Unavailable(BellhopError):
    """The database is away, or there is too much to do at this moment; the caller may try again.

    `facts` are extra members of the problem.
    """

    detail = "The service cannot use its database at this moment. Try again shortly."

    def __init__(self, detail: str | None = None, **facts: object) -> None:
        super().__init__(detail)
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a request: `pointer` is an RFC 6901 pointer into the body ('' for the whole of it)."""

    pointer: str
    detail: str


class Invalid(BellhopError):
    """The request can be read but not accepted; `faults` says where."""

    detail = "The request is not valid. Each entry of 'errors' names a place in it."

    def __init__(self, *faults: Fault) -> None:
        super().__init__()
        self.faults = faults
