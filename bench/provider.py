"""A provider on loopback that takes every message at once.

It is a program, so that it shares nothing with the benchmark. `python -m bench.provider PORT CERTIFICATE` speaks TLS.
It answers a request as Telegram's Bot API answers a message if its path begins with `/bot`, otherwise as WhatsApp's
Cloud API does. It reads orders, one JSON document per line:

- `{"count": true}`: the number of requests so far;
- `{"taken": true}`: all requests so far, each as its Unix time, path and recipient.
"""

import asyncio
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httptools
import uvloop

from bench.programs import Program
from bench.sites import Site

_TELEGRAM = b'{"ok":true,"result":{"message_id":%d}}'
_WHATSAPP = b'{"messaging_product":"whatsapp","messages":[{"id":"wamid.%d"}]}'


class Taken(NamedTuple):
    """A message as it arrived; `at` is a Unix time."""

    at: float
    path: str
    to: str


class Provider:
    """A running provider."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def count(self) -> int:
        """Returns how many messages have arrived."""
        return int(self._program.ask(count=True))

    def taken(self) -> list[Taken]:
        """Returns all messages that have arrived, in the order of arrival."""
        return [Taken(*each) for each in self._program.ask(taken=True)]


@contextmanager
def playing(site: Site, port: int) -> Iterator[Provider]:
    """Runs a provider with the site's certificate for 127.0.0.1.

    Raises BenchError if it does not start.
    """
    site.stack.certificates.server_context()
    pem = str(site.stack.certificates.ca_file.with_name("server.pem"))
    with Program("bench.provider", site.stack.environment, str(port), pem) as program:
        provider = Provider(program)
        provider.count()  # answers only once it listens
        yield provider


class Connection(asyncio.Protocol):
    taken: list[tuple[float, bytes, bytes]] = []  # noqa: RUF012  # of all connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._path = self._body = b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self.taken.append((time.time(), self._path, self._body))
        body = (_TELEGRAM if self._path.startswith(b"/bot") else _WHATSAPP) % len(self.taken)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)  # type: ignore[attr-defined]


async def serve(port: int, certificate: str) -> None:
    """Listens until the program ends."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    await loop.create_server(Connection, "127.0.0.1", port, ssl=context, backlog=4096)


def main() -> None:
    loop = uvloop.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(serve(int(sys.argv[1]), sys.argv[2]), loop).result()
    for line in sys.stdin:
        print(json.dumps(_carry_out(json.loads(line))), flush=True)


def _carry_out(order: dict[str, bool]) -> int | list[Taken]:
    if "count" in order:
        return len(Connection.taken)
    return [_described(each) for each in list(Connection.taken)]


def _described(taken: tuple[float, bytes, bytes]) -> Taken:
    at, path, body = taken
    message = json.loads(body)
    return Taken(at, path.decode(), str(message.get("chat_id") or message.get("to")))


if __name__ == "__main__":
    main()
