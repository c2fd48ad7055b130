"""A provider on loopback that takes every message at once: a program, so that it shares nothing with the benchmark.

`python -m bench.provider PORT CERTIFICATE` speaks TLS and answers each request as WhatsApp's Cloud API answers a
message. It reads orders, one JSON document per line: `{"count": true}` asks for the number of requests so far.
"""

import asyncio
import ssl
import sys
import threading
from itertools import count

import httptools
import uvloop


class Connection(asyncio.Protocol):
    numbers = count(1)
    answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        Connection.answered += 1
        body = b'{"messaging_product":"whatsapp","messages":[{"id":"wamid.%d"}]}' % next(self.numbers)
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
    for _ in sys.stdin:
        print(Connection.answered, flush=True)


if __name__ == "__main__":
    main()
