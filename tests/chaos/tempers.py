"""The receivers of the long run, by path: each behaves in its own way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.stack.receiver import Answer

Temper = Callable[[float, random.Random], Answer]


def good(_seconds: float, chance: random.Random) -> Answer:
    return Answer(delay_seconds=chance.uniform(0, 0.1))


def slow(seconds: float, chance: random.Random) -> Answer:
    """Twenty seconds too slow for the fast lane, then twenty seconds quick."""
    return Answer(delay_seconds=2.2) if seconds % 40 < 20 else good(seconds, chance)


def failing(seconds: float, chance: random.Random) -> Answer:
    """Fails a quarter of the requests, in one of several ways."""
    how = [Answer(500), Answer(close=True), Answer(429, delay_seconds=0.5)]
    return chance.choice(how) if chance.random() < 0.25 else good(seconds, chance)


def dead_for_a_while(seconds: float, chance: random.Random) -> Answer:
    """Hangs for the first twenty seconds of each minute, and fails for the next ten."""
    if seconds % 60 < 20:
        return Answer(delay_seconds=60)
    return Answer(503) if seconds % 60 < 30 else good(seconds, chance)


def gone(seconds: float, chance: random.Random) -> Answer:
    """Responds with 410 one time in fifty."""
    return Answer(410) if chance.random() < 0.02 else good(seconds, chance)


def flapping(seconds: float, chance: random.Random) -> Answer:
    return good(seconds, chance) if int(seconds / 5) % 2 else Answer(close=True)


def refusing(_seconds: float, _chance: random.Random) -> Answer:
    """Always fails. Its endpoint is deleted at the end."""
    return Answer(500)


TEMPERS: tuple[Temper, ...] = (good, good, slow, failing, dead_for_a_while, gone, flapping, refusing)


class Tempers:
    """The behaviour of the receiver: each path has its temper, until `are_calm` is set.

    Those without one, of the requests that runs make, are `failing`.
    """

    def __init__(self, chance: random.Random) -> None:
        self.by_path: dict[str, Temper] = {}
        self.are_calm = False
        self._chance = chance
        self._began = time.monotonic()

    def __call__(self, path: str, _body: bytes) -> Answer:
        if self.are_calm:
            return Answer()
        return self.by_path.get(path, failing)(time.monotonic() - self._began, self._chance)
