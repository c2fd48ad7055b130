"""The program on the page about retries, against a server that fails at first."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.docs.pages import blocks


class Busy(BaseHTTPRequestHandler):
    """Responds to the first request with 503 and `Retry-After: 2`, hangs up on the second, and accepts the third."""

    seen: list[tuple[float, str]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((time.monotonic(), self.headers["Idempotency-Key"]))
        if len(self.seen) == 2:
            return
        body = json.dumps({"data": {"id": "con_1"}}).encode()
        self.send_response(201 if len(self.seen) == 3 else 503)
        self.send_header("Retry-After", "2")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def busy() -> Iterator[HTTPServer]:
    Busy.seen = []
    server = HTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_the_program_waits_as_it_is_told_and_keeps_its_key(busy: HTTPServer) -> None:
    (program,) = blocks("retries.md", "python")
    names: dict[str, Any] = {}
    exec(program, names)

    made = names["upsert_contact"](f"http://127.0.0.1:{busy.server_port}", "bhp_1", {"email": "ada@example.com"})

    times, keys = zip(*Busy.seen, strict=True)
    assert made == {"id": "con_1"}
    assert len(times) == 3
    assert len(set(keys)) == 1
    assert times[1] - times[0] >= 2
