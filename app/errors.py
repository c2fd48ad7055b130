"""Bellhop's expected errors, each with its problem's slug. Status codes: `app/problems.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.problems import PROBLEMS

MAX_FAULTS = 100
T = TypeVar("T")


class BellhopError(Exception):
    """An expected refusal of a request. `slug` names an entry of the table of problems.

    `detail` is a sentence for the caller: the given one, else the default of the class, else the default of the
    problem.
    """

    slug = "internal-error"
    detail = ""

    def __init__(self, detail: str | None = None) -> None:
        self.detail = detail or self.detail or PROBLEMS[self.slug].detail
        super().__init__(self.detail)


class SettingsError(BellhopError):
    """A setting is missing or wrong; `detail` names it. Only operators see this error."""

    slug = "internal-error"


class Malformed(BellhopError):
    """The request cannot be read; `detail` says where."""

    slug = "malformed-request"


class TooLarge(BellhopError):
    """The request is larger than its limit, which `detail` names."""

    slug = "payload-too-large"


class NotFound(BellhopError):
    """The workspace has no such resource."""

    slug = "not-found"


class Unauthenticated(BellhopError):
    """The token is missing, wrong, expired or revoked."""

    slug = "unauthenticated"


class InsufficientScope(BellhopError):
    """The token's restrictions do not allow the operation."""

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


class Throttled(BellhopError):
    """The caller acts too often, and may go on in `retry_after_seconds`. `when`: that time in words."""

    slug = "rate-limited"

    def __init__(self, detail: str, retry_after_seconds: int, when: str | None = None) -> None:
        super().__init__(f"{detail} Try again in {when or f'{retry_after_seconds} s'}.")
        self.retry_after_seconds = retry_after_seconds


class RateLimited(Throttled):
    """The token has used up its requests for now."""

    def __init__(self, per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(f"This token may make {per_minute:,} requests a minute.", retry_after_seconds)


class TooManyPages(Throttled):
    """A session has reached its limit of pages in a minute."""

    def __init__(self, per_minute: int, retry_after_seconds: int) -> None:
        super().__init__(f"You may open {per_minute:,} pages a minute.", retry_after_seconds)


class TooMuchStored(Throttled):
    """The files that were sent within an hour have too many bytes in total."""

    def __init__(self, retry_after_seconds: int) -> None:
        when = f"{math.ceil(retry_after_seconds / 60)} min"
        super().__init__("Too many large files were sent within an hour.", retry_after_seconds, when)


class TooManyStreams(Throttled):
    """The caller is at its limit of live streams, or opens them too fast."""


class Overloaded(BellhopError):
    """The workspace, or the process, is at its limit of concurrent slow requests."""

    slug = "rate-limited"
    detail = "Too many requests that take long are under way at this moment. Try again in a second."
    retry_after_seconds = 1


class TooManyArrivals(Throttled):
    """Webhooks have delivered more items to the workspace than it may receive in a minute."""

    def __init__(self, most: int, retry_after_seconds: int) -> None:
        super().__init__(f"A workspace takes {most:,} items of webhooks a minute.", retry_after_seconds)


class SignInRefused(BellhopError):
    """The address and the password match no account. The message does not say which is wrong."""

    slug = "unauthenticated"
    detail = "This e-mail address and password do not match."


class SignInThrottled(Throttled):
    """Too many attempts to sign in have failed."""

    def __init__(self, retry_after_seconds: int) -> None:
        minutes = -(-retry_after_seconds // 60)
        when = "a minute" if minutes == 1 else f"{minutes} minutes"
        super().__init__("Too many attempts to sign in have failed.", retry_after_seconds, when)
        self.in_general = f"Too many attempts from here. Try again in {when}."


class Unavailable(BellhopError):
    """The service cannot answer now; the caller may retry. `facts`: extra members of the problem."""

    slug = "unavailable"

    def __init__(self, detail: str | None = None, **facts: object) -> None:
        super().__init__(detail)
        self.facts = facts


@dataclass(frozen=True, slots=True)
class Fault:
    """One invalid place in a request. `pointer`: an RFC 6901 pointer into the body, "" for all of it.

    A pointer such as `/limit` may also stand for a query parameter or a header of that name.
    """

    pointer: str
    detail: str


def pointer_to(*parts: object) -> str:
    """The RFC 6901 pointer to `parts`: `pointer_to("tags", 0)` is `/tags/0`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


class Invalid(BellhopError):
    """The request is well-formed but not acceptable. `faults`: its invalid places, up to MAX_FAULTS."""

    slug = "validation-failed"

    def __init__(self, first: Fault, *others: Fault) -> None:
        detail = f"{first.pointer.removeprefix('/')}: {first.detail}" if first.pointer else first.detail
        if others:
            faults = "fault" if len(others) == 1 else "faults"
            detail = f"{detail.removesuffix('.')} … and {len(others)} more {faults}"
        super().__init__(detail)
        self.faults = (first, *others)[:MAX_FAULTS]


def valid(pointer: str, read: Callable[[str], T], text: str) -> T:
    """Returns `read(text)`. Turns a ValueError of `read` into Invalid at `pointer`."""
    try:
        return read(text)
    except ValueError as error:
        raise Invalid(Fault(pointer, str(error))) from error


def first_line(error: Exception) -> str:
    """Returns the first line of the error's text; "no response" if it has none."""
    return (str(error).strip().splitlines() or ["no response"])[0]
