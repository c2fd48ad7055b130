"""Strangers begin requests and do not finish them: heads, then uploads; `/healthz`, and a write of a workspace."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPConnection

from tests.doors.services import service, tenant
from tests.doors.victims import victim
from tests.stack.stack import Stack

Tell = Callable[[str], None]
SECONDS = 30
HEAD = b"GET /healthz HTTP/1.1\r\nHost: be"
# Neither token nor workspace exists; the second says its length only at the end.
LINES = b"POST /api/v1/workspaces/wsp_0/%s HTTP/1.1\r\nHost: bellhop\r\nContent-Type: application/json\r\n"
SMALL = LINES % b"contacts" + b"Content-Length: 1000\r\n\r\n"
LARGE = LINES % b"contacts/import" + b"Content-Length: 16000000\r\n\r\n"
CHUNKED = LINES % b"contacts" + b"Transfer-Encoding: chunked\r\n\r\n"
ATTACKS = {
    "300 unfinished heads": [HEAD] * 300,
    "40 uploads with a token, a byte every two seconds": [SMALL, CHUNKED, LARGE, LARGE] * 10,
}


def measure(tell: Tell) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim").caller()
        credentials = f"Authorization: Bearer {attacker.token}\r\n\r\n".encode()
        for name, beginnings in ATTACKS.items():
            sent = [
                each.replace(b"wsp_0", attacker.workspace_id.encode()).replace(b"\r\n\r\n", b"\r\n" + credentials)
                for each in beginnings
            ]
            is_over = threading.Event()
            attack = [threading.Thread(target=trickle, args=(stack.port, each, is_over)) for each in sent]
            for thread in attack:
                thread.start()
            time.sleep(1)
            write = partial(other.call, "POST", "contacts", {"external_id": "x"})
            with victim(partial(check_health, stack)) as health, victim(write) as writes:
                time.sleep(SECONDS)
            is_over.set()
            for thread in attack:
                thread.join()
            tell(f"{name}: GET /healthz: {health}; writes of a workspace: {writes}")
            health.check()
            writes.check()


def trickle(port: int, beginning: bytes, is_over: threading.Event) -> None:
    """Begins a request and sends a byte every two seconds; again, as soon as it is cut off."""
    while not is_over.is_set():
        with suppress(OSError), ExitStack() as open_connection:
            connection = open_connection.enter_context(socket.create_connection(("127.0.0.1", port), timeout=2))
            connection.sendall(beginning)
            while not is_over.is_set():
                connection.sendall(b"1")
                with suppress(TimeoutError):
                    if not connection.recv(1000):
                        break
        is_over.wait(0.5)


def check_health(stack: Stack) -> None:
    connection = HTTPConnection("127.0.0.1", stack.port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    finally:
        connection.close()
