"""A receiver that records when each delivery first arrived, and never answers `/hanging`.

`python -m bench.stamps certificate port` serves TLS on loopback and reads orders, one JSON document per line:

- `{"count": true}`: how many deliveries have arrived and got a response;
- `{"stamps": true}`: when each of them first arrived, by identifier, as Unix times;
- `{"hung": true}`: how many requests got no response, and how many of those are still open.

It implements a minimum of HTTP/1.1, so that a response costs little and an open request takes a few kilobytes.
"""

import asyncio
import json
import re
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.errors import BenchError
from bench.programs import Program
from bench.sites import Site
from tests.stack.ports import free_port

HANGING = b"POST /hanging"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_DELIVERY = re.compile(rb"\r\nx-service-delivery: *(\w+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Stamps:
    """A running receiver. Requests below `url` get a response, those below `hanging_url` never do."""

    def __init__(self, program: Program, port: int) -> None:
        self.url = f"https://127.0.0.1:{port}/answered"
        self.hanging_url = f"https://127.0.0.1:{port}/hanging"
        self._program = program

    def count(self) -> int:
        """Returns how many deliveries have arrived and got a response."""
        return int(self._program.ask(count=True))

    def hung(self) -> tuple[int, int]:
        """Returns how many requests got no response, and how many of them are still open."""
        total, still_open = self._program.ask(hung=True)
        return total, still_open

    def all(self) -> dict[str, float]:
        """Returns when each delivery first arrived, by identifier."""
        return dict(self._program.ask(stamps=True))


@contextmanager
def stamping(site: Site) -> Iterator[Stamps]:
    """Runs a receiver with the site's certificate for 127.0.0.1.

    Raises BenchError if it does not start.
    """
    port, certificate = free_port(), site.stack.certificates.ca_file.with_name("server.pem")
    with Program("bench.stamps", site.stack.environment, str(certificate), str(port)) as program:
        stamps = Stamps(program, port)
        if stamps.count() != 0:  # answers only once it listens
            raise BenchError("The receiver has deliveries that nobody sent.")
        yield stamps


class Server:
    """The requests that have arrived."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.hung = 0
        self.open = 0

    def carry_out(self, order: dict[str, Any]) -> Any:
        if "count" in order:
            return len(self.first)
        if "hung" in order:
            return [self.hung, self.open]
        return self.first


class Connection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._read = b""
        self._hanging = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[: end + 2]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._read) < whole:
                return
            self._read = self._read[whole:]
            self._receive(head)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.open -= self._hanging

    def _receive(self, head: bytes) -> None:
        if head.startswith(HANGING):
            self._hanging += 1
            self._server.hung += 1
            self._server.open += 1
            return
        if delivery := _DELIVERY.search(head):
            self._server.first.setdefault(delivery[1].decode(), time.time())
        self._transport.write(_ANSWER)


async def _serve(certificate: str, port: int) -> None:
    server, ended = Server(), asyncio.Event()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: Connection(server), "127.0.0.1", port, ssl=context, backlog=4096)

    def listen_to_orders() -> None:
        for line in sys.stdin:
            answer = asyncio.run_coroutine_threadsafe(_carry_out(server, json.loads(line)), loop).result()
            print(answer, flush=True)
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=listen_to_orders, daemon=True).start()
    await ended.wait()


async def _carry_out(server: Server, order: dict[str, Any]) -> str:
    return json.dumps(server.carry_out(order))


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
