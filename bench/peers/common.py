"""Shared by the Python peers: the signature, the row of an attempt, and feeding."""

import hashlib
import hmac
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable

import psycopg2

SECRET = os.environ["SECRET"].encode()
INSERT = "INSERT INTO attempts (delivery, duration_ms, status, response) VALUES (%s, %s, %s, %s)"

_own = threading.local()


def headers(delivery: str, body: bytes) -> dict[str, str]:
    timestamp = int(time.time())
    value = hmac.digest(SECRET, b"%d." % timestamp + body, hashlib.sha256).hex()
    return {
        "Content-Type": "application/json",
        "User-Agent": "Peer/1",
        "X-Service-Delivery": delivery,
        "X-Service-Signature": f"t={timestamp},v1={value}",
    }


def record(delivery: str, seconds: float, status: int, response: str) -> None:
    """Inserts one row over the thread's own connection, in autocommit mode."""
    if not hasattr(_own, "cursor"):
        _own.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        _own.connection.autocommit = True
        _own.cursor = _own.connection.cursor()
    _own.cursor.execute(INSERT, (delivery, round(seconds * 1000), status, response))


def feed(enqueue: Callable[[str, str, str], object], release: Callable[[], object]) -> None:
    """Reads orders: a number enqueues that many held messages, `release` releases them.

    A message is a delivery, an address and a body. Prints a line after each order.
    """
    body, addresses = os.environ["BODY"], json.loads(os.environ["ADDRESSES"])
    for line in sys.stdin:
        if line == "release\n":
            release()
        else:
            for number in range(int(line)):
                enqueue(f"dlv_{uuid.uuid4().hex}", addresses[number % len(addresses)], body)
        print("done", flush=True)
