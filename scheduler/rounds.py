"""Rounds: a pass over many things, some of them at a time."""

from __future__ import annotations

from collections.abc import Callable


class Round:
    """Each call does the next part of the round, and begins again at the end.

    `go_on` is given where the last part ended ("": begin), and returns where this one did and how much it has done.
    """

    def __init__(self, go_on: Callable[[str], tuple[str, int]]) -> None:
        self._go_on = go_on
        self._after = ""

    def __call__(self) -> int:
        """Does the next part, and returns how much it has done."""
        self._after, done = self._go_on(self._after)
        return done
