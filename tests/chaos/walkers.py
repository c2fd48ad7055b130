"""The runs of the long run: a shop whose contacts go through automations while the troubles last."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from tests.journeys.runs import (
    Started,
    calls,
    flaws,
    make_visitors,
    publish_walk,
    start,
    unfinished_runs,
)
from tests.journeys.shops import Shop
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

CONTACTS = 500
RUNS = 2_000
WAITS_SECONDS = (1, 3, 7)  # an automation for each
CLIENTS = 2
# The share of the time in which runs are started; the troubles go on while the last ones end.
STARTED_WITHIN = 0.8


class Walkers:
    """Starts RUNS runs, evenly spread over most of `seconds`, in threads of its own, inside a block."""

    def __init__(self, stack: Stack, receiver: Receiver, shop: Shop, seconds: float, chance: random.Random) -> None:
        self.started: list[Started] = []
        self._stack, self._receiver, self._shop, self._chance = stack, receiver, shop, chance
        self._pause = STARTED_WITHIN * seconds * CLIENTS / RUNS
        self._paused = threading.Event()  # never set
        self._contacts = make_visitors(stack, shop, CONTACTS)
        self._automations = [publish_walk(shop, receiver, wait, f"Wait {wait} s") for wait in WAITS_SECONDS]
        self._pool = ThreadPoolExecutor(CLIENTS)
        self._running: list[Future[None]] = []

    def __enter__(self) -> Self:
        self._running = [self._pool.submit(self._start, range(first, RUNS, CLIENTS)) for first in range(CLIENTS)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        for client in self._running:
            client.result()

    def left(self) -> int:
        """How many runs have not ended."""
        return unfinished_runs(self._stack, self._shop)

    def settle(self) -> tuple[Counter[str], Sequence[str]]:
        """Counts what was done, and returns what is wrong."""
        counts = Counter({"runs": len(self.started), "requests": calls(self._receiver)})
        return counts, list(flaws(self._stack, self._shop, self._receiver, self.started))

    def _start(self, numbers: Sequence[int]) -> None:
        caller = self._shop.caller()
        for number in numbers:
            automation = self._chance.choice(self._automations)
            self.started.append(start(caller, automation, self._chance.choice(self._contacts), number))
            self._paused.wait(self._pause)
