"""The results of claims, for workers that keep many rows in progress at once.

Such a worker looks into a mailbox again only when it may have more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from app.mailbox.mail import Claimed


class Held(Protocol):
    """An object that belongs to a claimed row, such as a dispatch or an outcome."""

    @property
    def claimed(self) -> Claimed:
        """The claimed row."""


D = TypeVar("D", bound=Held, covariant=True)
T = TypeVar("T", bound=Held, covariant=True)


class Pause(NamedTuple):
    """How long not to look into a mailbox. With `is_closed`, not even if its bell rings."""

    seconds: float
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Found(Generic[D, T]):
    """The result of a claim for some owners.

    `dispatches`: what to send. `settled`: outcomes of rows that are not sent. `more`: the owners that may have more
    now; `pauses`: owners that may have more later. An owner in neither has no more until its bell rings.
    """

    dispatches: Sequence[D]
    settled: Sequence[T] = ()
    more: Sequence[str] = ()
    pauses: Mapping[str, Pause] = field(default_factory=dict)


def may_have_more(rooms: Mapping[str, int], batch: Iterable[Claimed]) -> list[str]:
    """Returns the owners whose room the claimed rows fill: they may have more."""
    numbers = Counter(row.owner for row in batch)
    return [owner for owner, room in rooms.items() if numbers[owner] == room]
