"""Connections with TLS to other people's servers, made only to addresses that may be dialled."""

from __future__ import annotations

import asyncio
import errno
import functools
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from itertools import zip_longest
from typing import Protocol

from app.lib.addresses import Network, is_public
from app.lib.conversation import Conversation

MOST_ADDRESSES = 8  # of one name; each is tried in turn, so a name with thousands would keep the loop busy
RESOLVER_THREADS = 64  # getaddrinfo cannot be cancelled: a name whose server is silent holds its thread for a while
REMEMBERED_SECONDS = 10
LATE_SECONDS, OLD_SECONDS = 1, 300  # silent name servers that hold all threads do not cut off names that were known
HEAD_START_SECONDS = 0.25  # of each address of a name before the next one

Ends = Sequence[tuple[int, str]]  # address family and IP address


class NotPublic(OSError):
    """A name leads to an address that is never dialled; that address."""


class UnknownName(OSError):
    """A name has no address."""


class Unreachable(OSError):
    """Every address failed; `errors` has what each did."""

    def __init__(self, errors: Sequence[OSError]) -> None:
        super().__init__(errors)
        self.errors = errors


class Resolver(Protocol):
    async def resolve(self, host: str, port: int) -> Ends:
        """The addresses of a name. Raises OSError if there are none."""


class Dialler:
    def __init__(self, tls: ssl.SSLContext, allowed: Sequence[Network], resolver: Resolver | None) -> None:
        self._tls = tls
        self._allowed = allowed
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")
        self._names = _Names(resolver or _SystemResolver(self._threads))

    async def dial(self, host: str, port: int, conversation: Conversation, patience: float) -> None:
        """Connects the conversation to the server. The caller cancels this after `patience` seconds at most.

        Raises NotPublic, UnknownName, Unreachable.
        """
        found = _literal(host) or await self._names.find(host, port)
        # It is these very addresses that are dialled next, so an answer of DNS that changes between check and use gains
        # nothing. The others are left out, so that a failure tells of those that were dialled.
        public = [(family, ip) for family, ip in found if is_public(ip_address(ip), self._allowed)]
        if not public:
            raise NotPublic(found[0][1])
        left = _by_turns(public)
        errors: list[OSError] = []
        while (connection := await _first_connected(left, port, errors)) is not None:
            try:
                await self._shake_hands(connection, host, conversation, patience)
            except OSError as error:
                errors.append(error)
            else:
                return
        raise Unreachable(errors)

    def close(self) -> None:
        self._names.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _shake_hands(
        self, connection: socket.socket, host: str, conversation: Conversation, patience: float
    ) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: conversation,
                sock=connection,
                ssl=self._tls,
                server_hostname=host.rstrip("."),
                ssl_handshake_timeout=patience,
            )
        except BaseException:
            conversation.abort()
            connection.close()
            raise


async def _first_connected(left: list[tuple[int, str]], port: int, errors: list[OSError]) -> socket.socket | None:
    """A connection to one of these addresses, each tried when the one before has failed or had its head start.

    Takes those it tries out of `left` and puts what went wrong into `errors`; None if no address is left.
    """
    loop = asyncio.get_running_loop()
    tries: set[asyncio.Task[socket.socket]] = set()
    try:
        while left or tries:
            if left:
                family, ip = left.pop(0)
                tries.add(loop.create_task(_connect(family, ip, port)))
            timeout = HEAD_START_SECONDS if left else None
            ended, _ = await asyncio.wait(tries, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                tries.discard(each)
                error = each.exception()
                if error is None:
                    return each.result()
                if not isinstance(error, OSError):
                    raise error
                errors.append(error)
        return None
    finally:
        for each in tries:
            each.cancel()
            each.add_done_callback(_hang_up)


def _hang_up(connected: asyncio.Task[socket.socket]) -> None:
    if not connected.cancelled() and connected.exception() is None:
        connected.result().close()


async def _connect(family: int, ip: str, port: int) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, (ip, port))
    except RuntimeError as error:
        # The loop has not let go yet of a connection that had the same file descriptor.
        connection.close()
        raise OSError(errno.EBUSY, str(error)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _literal(host: str) -> Ends | None:
    try:
        version = ip_address(host).version
    except ValueError:
        return None
    return [(socket.AF_INET if version == 4 else socket.AF_INET6, host)]


def _by_turns(ends: Ends) -> list[tuple[int, str]]:
    """One family after the other; that of the first address goes first."""
    first = [end for end in ends if end[0] == ends[0][0]]
    others = [end for end in ends if end[0] != ends[0][0]]
    return [end for pair in zip_longest(first, others) for end in pair if end is not None]


class _Names:
    """Remembers what a resolver said, and asks it once at a time about each name, however many want to know."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._known: dict[tuple[str, int], tuple[float, Ends]] = {}
        self._asked: dict[tuple[str, int], asyncio.Task[Ends]] = {}

    async def find(self, host: str, port: int) -> Ends:
        now = asyncio.get_running_loop().time()
        key = host, port
        until, known = self._known.get(key, (now, None))
        if known is not None and now < until:
            return known
        if now >= until + OLD_SECONDS:
            known = None
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._ask(host, port))
            self._asked[key].add_done_callback(functools.partial(self._answered, key))
        asked = self._asked[key]
        # One who gives up does not take the answer away from the others.
        await asyncio.wait([asked], timeout=None if known is None else LATE_SECONDS)
        if known is not None and not asked.done():
            return known
        if asked.cancelled():
            raise UnknownName(host)
        return asked.result()

    def close(self) -> None:
        for asked in self._asked.values():
            asked.cancel()

    async def _ask(self, host: str, port: int) -> Ends:
        try:
            found = await self._resolver.resolve(host, port)
        except OSError as error:
            raise UnknownName(host) from error
        if not found:
            raise UnknownName(host)
        return found

    def _answered(self, key: tuple[str, int], asked: asyncio.Task[Ends]) -> None:
        del self._asked[key]
        if asked.cancelled() or asked.exception() is not None:
            return
        now = asyncio.get_running_loop().time()
        while self._known and self._known[oldest := next(iter(self._known))][0] + OLD_SECONDS <= now:
            del self._known[oldest]
        self._known.pop(key, None)  # so that the youngest is the last
        self._known[key] = now + REMEMBERED_SECONDS, asked.result()


class _SystemResolver:
    """getaddrinfo, in threads of its own."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def resolve(self, host: str, port: int) -> Ends:
        # As bytes: a text would be encoded once more.
        lookup = functools.partial(
            socket.getaddrinfo, host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        found = await asyncio.get_running_loop().run_in_executor(self._threads, lookup)
        return [(family, str(end[0])) for family, _, _, _, end in found[:MOST_ADDRESSES]]
