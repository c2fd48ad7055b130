"""HTTP as bytes: builds requests, and finds where a response ends."""

import re
from collections.abc import Sequence
from uuid import uuid4

_BODY = b'{"email":"load-%010d@example.com","first_name":"Ada","tags":["vip"]}'
_NUMBER = re.compile(rb"load-(\d{10})@")
_LENGTH = b"\r\nContent-Length: "


class Requests:
    """POSTs of distinct contacts, each identified by a number.

    With `keys`, each request has a new Idempotency-Key.
    """

    def __init__(self, port: int, path: str, token: str, keys: bool = False) -> None:
        lines = [
            f"POST {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
            f"Content-Length: {len(_BODY % 0)}",
        ]
        self._head = "\r\n".join(lines).encode()
        self._keys = keys

    def make(self, number: int) -> bytes:
        key = b"\r\nIdempotency-Key: %s" % str(uuid4()).encode() if self._keys else b""
        return self._head + key + b"\r\n\r\n" + _BODY % number


class Starts:
    """POSTs that start the automation at `path` for these contacts, in rotation."""

    def __init__(self, port: int, path: str, token: str, contacts: Sequence[str]) -> None:
        bodies = [b'{"contact_id":"%s"}' % contact.encode() for contact in contacts]
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(bodies[0])}\r\n\r\n"
        )
        self._requests = [head.encode() + body for body in bodies]

    def make(self, number: int) -> bytes:
        return self._requests[number % len(self._requests)]


class Reads:
    """GETs of the resources with these identifiers below `path`, in rotation."""

    def __init__(self, port: int, path: str, token: str, ids: Sequence[str]) -> None:
        end = f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        self._requests = [f"GET {path}/{id}{end}".encode() for id in ids]

    def make(self, number: int) -> bytes:
        return self._requests[number % len(self._requests)]


def number_in(body: bytes) -> int | None:
    """Returns the number of the contact in a webhook's body; None if there is none."""
    found = _NUMBER.search(body)
    return int(found[1]) if found else None


def is_whole(response: bytes) -> bool:
    end, length = response.find(b"\r\n\r\n"), response.find(_LENGTH)
    if end < 0 or length < 0:
        return False
    begin = length + len(_LENGTH)
    return len(response) >= end + 4 + int(response[begin : response.index(b"\r", begin)])


def is_accepted(response: bytes) -> bool:
    return response.startswith(b"HTTP/1.1 202 ")


def is_read(response: bytes) -> bool:
    return response.startswith(b"HTTP/1.1 200 ")
