"""The receivers of the long run: one path each, and each of them answers in a way of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tests.stack.receiver import Answer

Temper = Callable[[float, random.Random], Answer]


def good(_seconds: float, chance: random.Random) -> Answer:
    return Answer(delay_seconds=chance.uniform(0, 0.1))


def slow(seconds: float, chance: random.Random) -> Answer:
    """For twenty seconds too slow for the fast lane, then quick for twenty."""
    return Answer(delay_seconds=2.2) if seconds % 40 < 20 else good(seconds, chance)


def failing(seconds: float, chance: random.Random) -> Answer:
    """Now and then, in one way or the other."""
    how = [Answer(500), Answer(close=True), Answer(429, delay_seconds=0.5)]
    return chance.choice(how) if chance.random() < 0.25 else good(seconds, chance)


def dead_for_a_while(seconds: float, chance: random.Random) -> Answer:
    """Hangs for the first twenty seconds of each minute, and fails for the next ten."""
    if seconds % 60 < 20:
        return Answer(delay_seconds=60)
    return Answer(503) if seconds % 60 < 30 else good(seconds, chance)


def gone(seconds: float, chance: random.Random) -> Answer:
    """Gives notice, one time in fifty."""
    return Answer(410) if chance.random() < 0.02 else good(seconds, chance)


def flapping(seconds: float, chance: random.Random) -> Answer:
    return good(seconds, chance) if int(seconds / 5) % 2 else Answer(close=True)


def refusing(_seconds: float, _chance: random.Random) -> Answer:
    """Always. Its endpoint is deleted in the end."""
    return Answer(500)


TEMPERS: tuple[Temper, ...] = (good, good, slow, failing, dead_for_a_while, gone, flapping, refusing)


class Tempers:
    """What the receiver does: each path has its temper, until they are told to calm down."""

    def __init__(self, chance: random.Random) -> None:
        self.by_path: dict[str, Temper] = {}
        self.are_calm = False
        self._chance = chance
        self._began = time.monotonic()

    def __call__(self, path: str, _body: bytes) -> Answer:
        if self.are_calm:
            return Answer()
        return self.by_path[path](time.monotonic() - self._began, self._chance)
