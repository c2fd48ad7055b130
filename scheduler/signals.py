"""Signals: how much of every kind of mail waits, and for how long; what gauges, autoscalers and pages show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from app import mailbox, metrics
from app.domain.insight import queues
from app.mailbox import Mail, Place

# Rows that one call of `count` looks at, of each kind.
PART = 10_000


N = TypeVar("N", int, float)


class Signal:
    """Of one kind of mail, or of the two kinds of one table."""

    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.is_at_rest = True
        self.oldest_seconds: dict[str, float] = {}
        self.waiting: dict[str, int] = {}
        self._after: Place | None = None  # where the present count has got to
        self._counted: dict[str, int] = {}
        self.rest()

    def rest(self) -> None:
        """There is no such mail."""
        self.is_at_rest, self._after, self._counted = True, None, {}
        self._show_oldest({})
        self._show_waiting({})

    def tell_oldest(self, seconds: Mapping[str, float], *, is_part: bool) -> None:
        """Shows the ages; those of a part of the mail only where they are higher than what is shown."""
        self.is_at_rest = False
        self._show_oldest(_highest(seconds, self.oldest_seconds) if is_part else seconds)

    def count_on(self) -> None:
        """Counts the next part; until all is counted, the last count is shown, or this one where it is higher."""
        found, self._after = mailbox.count_waiting(self.mail, PART, self._after)
        self._counted = {kind: number + self._counted.get(kind, 0) for kind, number in found.items()}
        if self._after:
            self._show_waiting(_highest(self._counted, self.waiting))
        else:
            self._show_waiting(self._counted)
            self._counted = {}

    def _show_oldest(self, seconds: Mapping[str, float]) -> None:
        self.oldest_seconds = dict.fromkeys(self.mail.kinds, 0.0) | dict(seconds)
        for kind, oldest in self.oldest_seconds.items():
            metrics.OVERDUE_SECONDS.labels(kind).set(oldest)

    def _show_waiting(self, waiting: Mapping[str, int]) -> None:
        self.waiting = dict.fromkeys(self.mail.kinds, 0) | dict(waiting)
        for kind, number in self.waiting.items():
            metrics.WAITING.labels(kind).set(number)


def _highest(found: Mapping[str, N], shown: Mapping[str, N]) -> dict[str, N]:
    return {kind: max(number, shown[kind]) for kind, number in found.items()}


class Signals:
    """Of all kinds of mail. The passes that ring for overdue mail say which there is any of, and how old it is."""

    def __init__(self) -> None:
        self._signals: dict[str, Signal] = {}

    def of(self, mail: Mail) -> Signal:
        """That of the mail's table, which belongs to these from now on."""
        return self._signals.setdefault(mail.table, Signal(mail))

    def all(self) -> Sequence[Signal]:
        """One for each table that has mail."""
        return list(self._signals.values())

    def count(self) -> int:
        """Counts on in every kind that there is any of. Returns 0: counting does no work."""
        for signal in self._signals.values():
            if not signal.is_at_rest:
                signal.count_on()
        return 0

    def sample(self) -> int:
        """Notes all for the pages; returns of how many kinds something waits."""
        return queues.note(
            queues.Queue(queues.NAMES[kind], waiting, signal.oldest_seconds[kind])
            for signal in self._signals.values()
            for kind, waiting in signal.waiting.items()
        )
