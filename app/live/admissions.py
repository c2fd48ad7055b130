"""Admissions: decides who may open a stream now, mostly without asking the database."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from app import bounds
from app.bounds import Bound, Places, Rates
from app.errors import TooManyStreams, Unavailable

Result = TypeVar("Result")

# Descriptors that the process itself needs: connections to PostgreSQL and Redis, and files that Python has open.
OWN_DESCRIPTORS = 64
RETRY_SECONDS = 10
CHECKS_AT_ONCE = 4


class Crowd:
    """Counts requests and streams, and refuses new ones above a bound. Call it on the event loop."""

    def __init__(self, descriptors: int) -> None:
        self._descriptors = max(descriptors - OWN_DESCRIPTORS, 1)
        self._requests = 0
        self._places: dict[Bound, Places] = {}
        self._of_addresses = Rates()
        self._of_actors = Rates()

    @property
    def most_heads(self) -> int:
        """The most connections with an incomplete head: half of the descriptors kept from streams."""
        return max(self._descriptors * (100 - bounds.LIVE_DESCRIPTORS.most) // 200, 1)

    def enter(self) -> Callable[[], None]:
        """Takes a place for a request; returns a function that gives it back. Raises Unavailable."""
        for bound, most in (
            (bounds.LIVE_STREAMS, bounds.LIVE_STREAMS.most),
            (bounds.LIVE_DESCRIPTORS, self._descriptors * bounds.LIVE_DESCRIPTORS.most // 100),
        ):
            if self._requests >= most:
                bound.reached()
                raise Unavailable("This process has as many live streams as it can have.")
        self._requests += 1
        return self._leave

    def ask_readiness(self) -> Callable[[], None]:
        """Takes a place for a readiness check, like `enter`. Raises Unavailable."""
        try:
            return self.take(bounds.LIVE_READINESS, None, "")
        except TooManyStreams as error:
            raise Unavailable("The process does not know yet whether it is ready.") from error

    def take(self, bound: Bound, key: Hashable, owner: str) -> Callable[[], None]:
        """Takes one of the places that `bound` allows `key`; returns a function that gives it back.

        Raises TooManyStreams if none is free. `owner` names the holder of the key in the error's text.
        """
        places = self._places.setdefault(bound, Places(bound))
        if not places.take(key):
            raise TooManyStreams(f"{owner} has {bound.most:,} live streams open, the most it may have.", RETRY_SECONDS)
        return partial(places.leave, key)

    def count_opening(self, address: str, credential: str) -> None:
        """Counts an opened stream. Raises TooManyStreams if address or credential opens them too fast."""
        seconds = self._of_addresses.take(address, bounds.LIVE_OPENINGS_PER_ADDRESS)
        if seconds := seconds or self._of_actors.take(credential, bounds.LIVE_OPENINGS_PER_ACTOR):
            raise TooManyStreams("You open too many live streams.", seconds)

    def _leave(self) -> None:
        self._requests -= 1


class Checks:
    """Threads that authenticate listeners in the database. Addresses take turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(CHECKS_AT_ONCE, thread_name_prefix="checks")
        self._free = CHECKS_AT_ONCE
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by address, in the order of their turns

    async def run(self, address: str, work: Callable[[], Result], is_over: Callable[[], bool] = bool) -> Result | None:
        """Runs `work` when it is the address's turn, in a thread; returns its result.

        Returns None, without running `work`, if `is_over()` is true by then.
        """
        if self._free:
            self._free -= 1
        else:
            turn = self._loop.create_future()
            self._waiting.setdefault(address, deque()).append(turn)
            await turn
        try:
            return None if is_over() else await self._loop.run_in_executor(self._threads, work)
        finally:
            self._pass_on()

    def submit(self, work: Callable[[], object]) -> None:
        """Runs `work` later, in a thread, and ignores its result."""
        self._threads.submit(work)

    def stop(self) -> None:
        """Cancels queued work, and waits until the threads end."""
        self._threads.shutdown(cancel_futures=True)

    def _pass_on(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        address = next(iter(self._waiting))
        turns = self._waiting.pop(address)
        turns.popleft().set_result(None)
        if turns:
            self._waiting[address] = turns
