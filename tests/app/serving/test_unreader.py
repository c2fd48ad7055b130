"""What has arrived of a request, and how fast."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from flask import Flask
from flask.sessions import SecureCookieSessionInterface

from app import config
from app.serving import cookies, unreader
from app.serving.unreader import Arrived, Unreader, arrived
from tests.app.test_config import NEEDED

HEAD = b"POST / HTTP/1.1\r\nHost: bellhop.test\r\n"
SMALL, LARGE = HEAD + b"content-length: 4\r\n\r\n", HEAD + b"Content-Length:65537\r\n\r\n"


@dataclass(frozen=True)
class Wire:
    client: socket.socket
    unreader: Unreader
    left: list[None]


@pytest.fixture
def wire() -> Iterator[Wire]:
    client, server = socket.socketpair()
    left: list[None] = []
    with client, server:
        yield Wire(client, Unreader(server, "", lambda: left.append(None)), left)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET /", (Arrived.PART, -1)),
        (HEAD, (Arrived.PART, -1)),
        (HEAD + b"\r\n", (Arrived.ALL, 0)),
        (SMALL + b"123", (Arrived.PART, 1)),
        (SMALL + b"1234", (Arrived.ALL, 0)),
        (SMALL + b"1234GET /", (Arrived.ALL, 0)),
        (LARGE, (Arrived.LARGE, 65537)),
        (LARGE + b"123", (Arrived.LARGE, 65534)),
        (LARGE + b"1" * 65537, (Arrived.ALL, 0)),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n", (Arrived.LARGE, 4)),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", (Arrived.LARGE, -1)),
    ],
)
def test_a_request_has_arrived_with_its_body(data: bytes, expected: tuple[Arrived, int]) -> None:
    assert arrived(data) == expected


@pytest.mark.parametrize("length", [b"", b"-1", b"four", b"9" * 5000])
def test_a_request_with_a_length_that_is_none_is_left_to_be_refused(length: bytes) -> None:
    assert arrived(HEAD + b"Content-Length: " + length + b"\r\n\r\n") == (Arrived.ALL, 0)


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\n", HEAD + b"a: b\n\n", HEAD + b"a" * 32 * 1024])
def test_a_head_that_will_not_end_is_left_to_be_refused(head: bytes) -> None:
    assert arrived(head) == (Arrived.LARGE, -1)


def test_what_arrives_in_parts_is_gathered_for_the_parser(wire: Wire) -> None:
    states = []
    for part in (SMALL[:5], SMALL[5:], b"12", b"34GET /next"):
        wire.client.sendall(part)
        states.append(wire.unreader.gather())

    assert states == [Arrived.PART, Arrived.PART, Arrived.PART, Arrived.ALL]
    assert wire.unreader.read() == SMALL + b"1234GET /next"


def test_a_request_that_was_sent_with_the_one_before_needs_nothing_more(wire: Wire) -> None:
    wire.unreader.unread(HEAD + b"\r\n")
    wire.unreader.renew()

    assert wire.unreader.gather() is Arrived.ALL


def test_the_end_of_a_connection_is_left_to_the_parser(wire: Wire) -> None:
    wire.client.sendall(SMALL)
    wire.client.shutdown(socket.SHUT_WR)

    assert wire.unreader.gather() is Arrived.ALL
    assert wire.unreader.read() == SMALL
    assert wire.unreader.read() == b""


def test_a_place_is_left_with_the_last_byte_of_the_body(wire: Wire) -> None:
    wire.client.sendall(LARGE + b"1" * 60_000)
    assert wire.unreader.gather() is Arrived.LARGE
    wire.unreader.take_place()
    wire.client.sendall(b"1" * 5_537)
    read = wire.unreader.read(len(LARGE) + 65_536)
    assert wire.left == []

    wire.client.sendall(b"1")

    assert read + wire.unreader.read(1) == LARGE + b"1" * 65_537
    assert wire.left == [None]


def test_a_client_is_late_that_stalls_or_trickles(wire: Wire) -> None:
    begun, stall = time.monotonic(), unreader.STALL_SECONDS
    wire.client.sendall(LARGE + b"1" * 10_000)
    wire.unreader.gather()
    received = len(LARGE) + 10_000

    assert not wire.unreader.is_late(begun + stall + received / 1000 - 0.1, 1000)
    assert wire.unreader.is_late(begun + stall + received / 1000 + 5, 1000)


def test_a_client_that_has_sent_nothing_is_not_late(wire: Wire) -> None:
    assert wire.unreader.gather() is Arrived.PART

    assert not wire.unreader.is_late(time.monotonic() + 60, 1000)


def test_time_that_the_service_takes_does_not_make_a_client_late(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(unreader.time, "monotonic", lambda: now)
    wire.client.sendall(LARGE)
    wire.unreader.gather()
    wire.unreader.take_place()
    wire.client.sendall(b"1")
    wire.unreader.read()
    wire.unreader.chunk(1)
    now += 60

    assert not wire.unreader.is_waiting
    wire.client.sendall(b"1")
    wire.unreader.chunk(1)
    assert not wire.unreader.is_late(now + unreader.STALL_SECONDS, 1000)


def test_a_connection_is_drained_until_its_client_closes_it(wire: Wire) -> None:
    assert wire.unreader.linger()
    wire.client.sendall(b"more")
    assert not wire.unreader.drain()

    wire.client.close()

    assert wire.unreader.drain()


def test_a_client_that_goes_on_sending_is_not_listened_to_for_long(wire: Wire) -> None:
    wire.unreader.linger()
    drained = []
    for _ in range(5):
        wire.client.sendall(b"1" * 16 * 1024)
        drained.append(wire.unreader.drain())

    assert drained == [False, False, False, False, True]


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The cookie of a session whose token is `ada`."""
    for name, value in {**NEEDED, "BASE_URL": "http://127.0.0.1:8000"}.items():
        monkeypatch.setenv(name, value)
    config.settings.cache_clear()
    cookies.of_settings.cache_clear()
    maker = Flask("maker", static_folder=None)
    maker.config.update(cookies.configuration())
    serializer = SecureCookieSessionInterface().get_signing_serializer(maker)
    assert serializer
    yield f"bellhop={serializer.dumps({'_user_id': 'ada'})}"
    config.settings.cache_clear()
    cookies.of_settings.cache_clear()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", ""),
        ("Cookie: bellhop=made-up\r\n", ""),
        ("Cookie: {signed}\r\n", "ada"),
        ("cookie: one=more; {signed}\r\n", "ada"),
        ("Cookie:  {signed}; one=more\r\nCookie: another=1\r\n", "ada"),
        ("Authorization: Bearer made-up\r\nCookie: {signed}\r\n", "ada"),
        ("Cookie: bellhop=made-up\r\nAUTHORIZATION: Bearer x\r\n", "x"),
        ("Authorization: bearer  x \r\n", "x"),
    ],
)
def test_a_caller_is_known_by_its_session_or_token_whatever_else_it_sends(
    wire: Wire, signed: str, lines: str, expected: str
) -> None:
    wire.client.sendall(HEAD + lines.format(signed=signed).encode() + b"\r\n")
    wire.unreader.gather()

    assert wire.unreader.caller() == expected
