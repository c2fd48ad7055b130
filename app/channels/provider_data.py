"""Makes data from providers storable: texts, identifiers, times, pauses and sizes."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from app.lib import clock

# The longest pause that a provider may cause.
LONGEST_PAUSE_SECONDS = 3600.0
# Longer than any provider's identifiers.
MOST_IDENTIFIER = 255
MOST_BYTES = 2**53

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProviderData:
    """Base of frozen dataclasses with data from a provider. Makes every field storable."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if (kept := self.kept(each.name, value)) is not value:
                object.__setattr__(self, each.name, kept)

    def kept(self, name: str, value: Any) -> Any:
        """Returns a storable value. A subclass may raise BadPayload if the value must not be changed."""
        if isinstance(value, str):
            return text_of(value)
        return time_of(value) if isinstance(value, datetime) else value


def text_of(said: str) -> str:
    """Removes what PostgreSQL cannot store: U+0000 and lone surrogates."""
    if "\0" not in said and (said.isascii() or not _has_surrogate(said)):
        return said
    return said.replace("\0", "").encode("utf-8", "ignore").decode()


def storable(said: Any) -> Any:
    """Removes what PostgreSQL cannot store from a JSON value, at any depth."""
    if isinstance(said, dict):
        return {text_of(name): storable(value) for name, value in said.items()}
    if isinstance(said, list):
        return [storable(value) for value in said]
    return text_of(said) if isinstance(said, str) else said


def identifier_of(said: object) -> str | None:
    """Returns the identifier; None if it cannot be stored unchanged."""
    if not isinstance(said, str) or not 0 < len(said) <= MOST_IDENTIFIER:
        return None
    return said if text_of(said) == said else None


def time_of(said: datetime) -> datetime:
    """Limits the time to the range from 1970 until now, because a provider's clock may be wrong."""
    return min(max(said, _EPOCH), clock.now())


def unix_time(seconds: int) -> datetime:
    """Returns the time of a Unix timestamp. Raises ValueError if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:  # the exception depends on the number's size
        raise ValueError("It is not a time.") from error


def pause_of(asked: object, otherwise: float) -> float:
    """Returns the requested pause in seconds, up to LONGEST_PAUSE_SECONDS.

    Returns `otherwise` if `asked` is not a number, or negative.
    """
    if isinstance(asked, bool) or not isinstance(asked, int | float | str):
        return otherwise
    try:
        seconds = float(asked)
    except (OverflowError, ValueError):
        return LONGEST_PAUSE_SECONDS if isinstance(asked, int) and asked > 0 else otherwise
    return otherwise if math.isnan(seconds) or seconds < 0 else min(seconds, LONGEST_PAUSE_SECONDS)


def size_of(said: object) -> int | None:
    """Returns a number of bytes; None if it is invalid."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said < MOST_BYTES else None


def _has_surrogate(said: str) -> bool:
    try:
        said.encode()
    except UnicodeEncodeError:
        return True
    return False
