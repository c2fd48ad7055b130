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
from tests.doors.victims import attacking, victim
from tests.stack.stack import Stack

Tell = Callable[[str], None]
SECONDS = 30
HEAD = b"GET /healthz HTTP/1.1\r\nHost: be"
UPLOAD = b"POST {path}/contacts/import HTTP/1.1\r\nHost: bellhop\r\nContent-Type: application/jsonl\r\n{token}"
SMALL = UPLOAD + b"Content-Length: 1000\r\n\r\n"
LARGE = UPLOAD + b"Content-Length: 16000000\r\n\r\n"
CHUNKED = UPLOAD + b"Transfer-Encoding: chunked\r\n\r\n"
DONE = b"GET /healthz HTTP/1.1\r\nHost: bellhop\r\nConnection: close\r\n\r\n"
ATTACKS = {
    "300 unfinished heads": [HEAD] * 300,
    "40 uploads, a byte every two seconds": [SMALL, CHUNKED, LARGE, LARGE] * 10,
    "40 clients that do not close": [DONE] * 40,
}


def measure(tell: Tell) -> None:
    with service({"web": 1, "writes": 1, "scheduler": 1}) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim").caller()
        path = f"/api/v1/workspaces/{attacker.workspace_id}".encode()
        token = f"Authorization: Bearer {attacker.token}\r\n".encode()
        felt = []
        for name, beginnings in ATTACKS.items():
            sent = [each.replace(b"{path}", path).replace(b"{token}", token) for each in beginnings]
            # Of 50 addresses, so that what holds for one is not what helps.
            acts = [
                partial(trickle, stack.port, f"127.0.0.{10 + number % 50}", each) for number, each in enumerate(sent)
            ]
            write = partial(other.call, "POST", "contacts", {"external_id": "x"})
            with attacking(acts):
                time.sleep(1)
                with victim(partial(check_health, stack)) as health, victim(write) as writes:
                    time.sleep(SECONDS)
            tell(f"{name}: GET /healthz: {health}; writes of a workspace: {writes}")
            felt += [health, writes]
        for each in felt:
            each.check()


def trickle(port: int, address: str, beginning: bytes, is_over: threading.Event) -> None:
    """Begins a request and sends a byte every two seconds; again, as soon as it is cut off."""
    while not is_over.is_set():
        with suppress(OSError), ExitStack() as open_connection:
            opened = socket.create_connection(("127.0.0.1", port), timeout=2, source_address=(address, 0))
            connection = open_connection.enter_context(opened)
            connection.sendall(beginning)
            while not is_over.is_set():
                connection.sendall(b"1")
                with suppress(TimeoutError):
                    if not connection.recv(1000):
                        is_over.wait(3)
                        break
        is_over.wait(0.5)


def check_health(stack: Stack) -> None:
    connection = HTTPConnection("127.0.0.1", stack.port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
    finally:
        connection.close()
