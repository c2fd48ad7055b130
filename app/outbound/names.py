"""Resolves names to addresses: one lookup per name at a time, with a cache."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from app.outbound.deadlines import MOST_QUEUED_SECONDS

MOST_ADDRESSES = 8  # the most of one name; each is tried in turn, so thousands would keep the loop busy
RESOLVER_THREADS = 64  # getaddrinfo cannot be cancelled: a silent name server blocks its thread for a while
REMEMBERED_SECONDS = 10
# How long to wait for the resolver if an old answer is known, and for how long such an answer still counts.
LATE_SECONDS, OLD_SECONDS = 1, 300

# Errors of getaddrinfo that always mean "no address". Others may mean trouble with the resolver.
DEFINITE = {socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_ADDRFAMILY, socket.EAI_FAIL}

Ends = Sequence[tuple[int, str]]  # address family and IP address
Key = tuple[str, int]  # host and port


class UnknownName(OSError):
    """The name has no address."""


class ResolverFailed(OSError):
    """Our resolver could not tell whether the name has an address."""


class Resolver(Protocol):
    """Resolves names by DNS."""

    async def resolve(self, host: str, port: int) -> Ends:
        """Returns a name's addresses. Raises socket.gaierror, or another OSError for our own faults."""


class Names:
    """The names known to a resolver. Belongs to one event loop."""

    def __init__(self, resolver: Resolver | None) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")
        self._resolver = resolver or _SystemResolver(self._threads)
        self._known: dict[Key, tuple[float, Ends]] = {}
        self._lookups: dict[Key, asyncio.Task[Ends]] = {}
        self._decided = 0  # how many definite answers the resolver has given
        # Names without a definite answer: since when, and the value of `_decided` at that time. Oldest first.
        self._undecided: dict[Key, tuple[float, int]] = {}

    async def find(self, host: str, port: int) -> Ends:
        """Returns the addresses of a name. Raises UnknownName, ResolverFailed.

        If the resolver is late or fails, returns the last answer, if it is at most OLD_SECONDS old.
        """
        now = asyncio.get_running_loop().time()
        key = host, port
        until, known = self._known.get(key, (now, None))
        if known is not None and now < until:
            return known
        if now >= until + OLD_SECONDS:
            known = None
        if key not in self._lookups:
            self._lookups[key] = asyncio.create_task(self._look_up(key))
            self._lookups[key].add_done_callback(functools.partial(self._remember, key))
        lookup = self._lookups[key]
        # A request that gives up must not cancel the lookup for others.
        await asyncio.wait([lookup], timeout=None if known is None else LATE_SECONDS)
        if lookup.cancelled():
            raise ResolverFailed("The resolver is closed.")
        if known is not None and (not lookup.done() or isinstance(lookup.exception(), ResolverFailed)):
            return known
        return lookup.result()

    def is_resolver_silent(self, host: str, port: int) -> bool:
        """Whether a lookup of this name is waiting, and our resolver is to blame, not the name."""
        return (host, port) in self._lookups and not self._is_name_at_fault((host, port))

    def close(self) -> None:
        """Cancels every lookup. Safe to repeat."""
        for lookup in self._lookups.values():
            lookup.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look_up(self, key: Key) -> Ends:
        now = asyncio.get_running_loop().time()
        while self._undecided and self._undecided[oldest := next(iter(self._undecided))][0] <= now - OLD_SECONDS:
            del self._undecided[oldest]
        self._undecided.setdefault(key, (now, self._decided))
        try:
            found = await self._resolver.resolve(*key)
        except socket.gaierror as error:
            if error.errno in DEFINITE:
                self._decide(key)
                raise UnknownName(*error.args) from error
            raise (UnknownName if self._is_name_at_fault(key) else ResolverFailed)(*error.args) from error
        except OSError as error:
            self._undecided.pop(key, None)  # the lookup never started
            raise ResolverFailed(*error.args) from error
        self._decide(key)
        if not found:
            raise UnknownName(key[0])
        return found

    def _decide(self, key: Key) -> None:
        self._undecided.pop(key, None)
        self._decided += 1

    def _is_name_at_fault(self, key: Key) -> bool:
        # A name whose own servers are broken looks like a broken resolver, except that other names still get answers.
        return key in self._undecided and self._undecided[key][1] < self._decided

    def _remember(self, key: Key, lookup: asyncio.Task[Ends]) -> None:
        del self._lookups[key]
        if lookup.cancelled() or lookup.exception() is not None:
            return
        now = asyncio.get_running_loop().time()
        while self._known and self._known[oldest := next(iter(self._known))][0] + OLD_SECONDS <= now:
            del self._known[oldest]
        self._known.pop(key, None)  # so that the newest entry is last
        self._known[key] = now + REMEMBERED_SECONDS, lookup.result()


class _SystemResolver:
    """Calls getaddrinfo in its own threads."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._free = asyncio.Semaphore(RESOLVER_THREADS)

    async def resolve(self, host: str, port: int) -> Ends:
        try:
            async with asyncio.timeout(MOST_QUEUED_SECONDS):
                await self._free.acquire()
        except TimeoutError as error:
            raise OSError("All resolver threads are busy.") from error
        try:
            # As bytes, because text would be encoded again.
            lookup = functools.partial(
                socket.getaddrinfo, host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
            )
            found = await asyncio.get_running_loop().run_in_executor(self._threads, lookup)
        finally:
            self._free.release()
        return [(family, str(end[0])) for family, _, _, _, end in found[:MOST_ADDRESSES]]
