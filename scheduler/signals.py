"""Signals: how much mail of each kind waits, and for how long.

Gauges and pages show the signals; autoscalers go by the gauges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from app import mailbox, metrics
from app.domain.insight import queues
from app.mailbox import Mail, Place

# How many rows of each kind one call of `count_on` looks at.
PART = 10_000


N = TypeVar("N", int, float)


class Signal:
    """The signals of one table's mail, which is of one kind or two."""

    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.is_at_rest = True
        self.oldest_seconds: dict[str, float] = {}
        self.waiting: dict[str, int] = {}
        self._after: Place | None = None  # where the current count continues; None at its beginning
        self._counted: dict[str, int] = {}
        self.rest()

    def rest(self) -> None:
        """Shows that there is no such mail."""
        self.is_at_rest, self._after, self._counted = True, None, {}
        self._show_oldest({})
        self._show_waiting({})

    def tell_oldest(self, seconds: Mapping[str, float], *, is_part: bool) -> None:
        """Shows the age, in seconds, of the oldest mail of each kind.

        `is_part`: the ages cover only part of the mail, so they replace only lower ones.
        """
        self.is_at_rest = False
        self._show_oldest(_highest(seconds, self.oldest_seconds) if is_part else seconds)

    def count_on(self) -> None:
        """Counts the next part.

        Until everything is counted, each kind shows its last count, or the current one if that is higher.
        """
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
    """The signals of all kinds of mail.

    `count` updates how much mail waits. The passes that ring for overdue mail set the ages, and reset the signals of
    tables without mail.
    """

    def __init__(self) -> None:
        self._signals: dict[str, Signal] = {}

    def of(self, mail: Mail) -> Signal:
        """Returns the signal of the mail's table. From now on, that signal is among `all`."""
        return self._signals.setdefault(mail.table, Signal(mail))

    def all(self) -> Sequence[Signal]:
        """Returns the signals: one for each table of mail."""
        return list(self._signals.values())

    def count(self) -> int:
        """Continues the count of every kind that has mail. Returns 0, because counting does no work."""
        for signal in self._signals.values():
            if not signal.is_at_rest:
                signal.count_on()
        return 0

    def sample(self) -> int:
        """Records all signals for the pages. Returns how many kinds have mail that waits."""
        return queues.note(
            queues.Queue(queues.NAMES[kind], waiting, signal.oldest_seconds[kind])
            for signal in self._signals.values()
            for kind, waiting in signal.waiting.items()
        )
