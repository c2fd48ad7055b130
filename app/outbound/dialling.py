"""Opens connections to third-party servers, only to permitted addresses."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from itertools import zip_longest

from app.lib.addresses import Network, is_public
from app.outbound.http_connections import Connection
from app.outbound.names import Ends, Names

HEAD_START_SECONDS = 0.25  # the time until the next address is tried, too (RFC 8305, section 5)


class NotPublic(OSError):
    """No address of a name may be dialled. The first argument is one of the addresses."""


class NotAllowed(OSError):
    """No address of a name may be dialled without TLS. The first argument is one of the addresses."""


class Unreachable(OSError):
    """Every address failed. `errors`: one exception for each."""

    def __init__(self, errors: Sequence[OSError]) -> None:
        super().__init__(errors)
        self.errors = errors


class Dialler:
    """Opens connections. Belongs to one event loop. Without `tls`, dials only `allowed` networks."""

    def __init__(self, tls: ssl.SSLContext | None, allowed: Sequence[Network], names: Names) -> None:
        self._tls = tls
        self._allowed = allowed
        self._names = names

    async def dial(self, host: str, port: int, connection: Connection) -> None:
        """Connects `connection` to the server. Has no time limit of its own: the caller cancels it.

        Raises NotPublic, NotAllowed, UnknownName, ResolverFailed, Unreachable.
        """
        found = _literal(host) or await self._names.find(host, port)
        # Dials exactly the checked addresses, so a DNS answer that changes after the check has no effect. Drops the
        # others, so that an error is about an address that was dialled.
        dialled = [(family, ip) for family, ip in found if self._may_dial(ip)]
        if not dialled:
            raise (NotAllowed if self._tls is None else NotPublic)(found[0][1])
        left = _alternating(dialled)
        errors: list[OSError] = []
        while (connected := await _first_connected(left, port, errors)) is not None:
            try:
                await self._shake_hands(connected, host, connection)
            except OSError as error:
                errors.append(error)
            else:
                return
        raise Unreachable(errors)

    def _may_dial(self, ip: str) -> bool:
        if self._tls is None:
            return any(ip_address(ip) in network for network in self._allowed)
        return is_public(ip_address(ip), self._allowed)

    async def _shake_hands(self, connected: socket.socket, host: str, connection: Connection) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=connected,
                ssl=self._tls,
                server_hostname=None if self._tls is None else host.rstrip("."),
            )
        except BaseException:
            connection.abort()
            connected.close()
            raise


async def _first_connected(left: list[tuple[int, str]], port: int, errors: list[OSError]) -> socket.socket | None:
    """Connects to one of these addresses. Tries the next one after a failure or HEAD_START_SECONDS.

    Removes tried addresses from `left`, and appends failures to `errors`. Returns None when no address is left.
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
        # The loop still registers a closed connection with the same file descriptor.
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


def _alternating(ends: Ends) -> list[tuple[int, str]]:
    """Alternates between the families, starting with that of the first address."""
    first = [end for end in ends if end[0] == ends[0][0]]
    others = [end for end in ends if end[0] != ends[0][0]]
    return [end for pair in zip_longest(first, others) for end in pair if end is not None]
