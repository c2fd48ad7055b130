"""What claims find, for workers that keep many rows under way and look into a mailbox only when it may have more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from app.mailbox.mail import Claimed


class Held(Protocol):
    """Something about a claimed row."""

    @property
    def claimed(self) -> Claimed:
        """The row."""


D = TypeVar("D", bound=Held, covariant=True)
T = TypeVar("T", bound=Held, covariant=True)


class Pause(NamedTuple):
    """Until when to leave a mailbox alone. `is_closed`: nothing can be had from it before, even if its bell rings."""

    seconds: float
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Found(Generic[D, T]):
    """What a claim for some owners found.

    `dispatches`: what to send. `settled`: outcomes of rows that are not sent. `more`: the owners that may have more
    now; `pauses`: those that may have more later. An owner that is in neither has no more until its bell rings.
    """

    dispatches: Sequence[D]
    settled: Sequence[T] = ()
    more: Sequence[str] = ()
    pauses: Mapping[str, Pause] = field(default_factory=dict)


def may_have_more(rooms: Mapping[str, int], batch: Iterable[Claimed]) -> list[str]:
    """The owners whose claimed rows fill their rooms, so that they may have more."""
    numbers = Counter(row.owner for row in batch)
    return [owner for owner, room in rooms.items() if numbers[owner] == room]
