"""Rounds: a pass over many items that handles some of them at a time."""

from __future__ import annotations

from collections.abc import Callable


class Round:
    """Does the next part of a round on each call, and begins a new round after the last part.

    `go_on` is called with the end of the previous part ("" at the beginning). It returns the end of its part ("" for
    the last one), and how many items it handled.
    """

    def __init__(self, go_on: Callable[[str], tuple[str, int]]) -> None:
        self._go_on = go_on
        self._after = ""

    def __call__(self) -> int:
        """Does the next part. Returns how many items it handled."""
        self._after, done = self._go_on(self._after)
        return done
