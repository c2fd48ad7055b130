"""Rounds: a pass over many things that does some of them at a time."""

from __future__ import annotations

from collections.abc import Callable


class Round:
    """Does the next part of a round on each call, and begins a new round after the last part.

    `go_on` gets where the previous part ended ("" at the beginning). It returns where its part ended ("" if
    that was the last), and how many things it did.
    """

    def __init__(self, go_on: Callable[[str], tuple[str, int]]) -> None:
        self._go_on = go_on
        self._after = ""

    def __call__(self) -> int:
        """Does the next part. Returns how many things it did."""
        self._after, done = self._go_on(self._after)
        return done
