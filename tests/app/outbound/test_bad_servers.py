"""Servers that break rules."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.outbound import Reason
from app.outbound.failure_reasons import judge
from app.outbound.http_connections import LONGEST_BODY
from tests.app.outbound.world import (
    CHUNKED,
    CLOSED,
    HUNG_MS,
    NOT_HTTP,
    OK,
    TOO_LONG,
    World,
    own_socket,
)


def test_a_server_that_closes_at_once_is_said_to(world: World) -> None:
    answer = world.deliver(world.says_and_closes())
    assert (answer.status, answer.error) == (None, "The server closed the connection without an answer.")


def test_a_server_that_closes_before_tls_is_said_to(world: World) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    answer = world.deliver(hang_up, plain=True)
    assert answer.error == "The server closed the connection without an answer."


def test_a_server_without_tls_is_said_to_lack_it(world: World) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    answer = world.deliver(plain, plain=True)
    assert answer.error == "The server does not speak TLS on this port."


def test_a_server_that_wants_a_certificate_of_ours_gets_none(world: World) -> None:
    answer = world.deliver(world.says(OK), demanding=True)
    assert answer.status is None
    # In TLS 1.3 its alert and its closing race each other.
    assert answer.error in {
        "No TLS connection could be made: tlsv13 alert certificate required.",
        "The server closed the connection without an answer.",
    }


def test_an_old_kind_of_signature_is_named_though_python_has_no_name_for_it() -> None:
    error = ssl.SSLError(1, "[SSL] legacy sigalg disallowed or unsupported (_ssl.c:992)")
    assert judge(error, "", "") == (Reason.TLS_FAILED, "legacy sigalg disallowed or unsupported")


def test_a_closed_port_is_said_to_refuse(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = world.deliver(world.says(OK), address=f"https://127.0.0.1:{taken.getsockname()[1]}/")
    assert (answer.status, answer.error) == (None, "The connection was refused.")


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"\0" * 1000,
    ],
    ids=["SSH", "settings of HTTP/2", "preface of HTTP/2", "HTTP/2", "a request", "two digits", "zeros"],
)
def test_garbage_is_not_http(world: World, garbage: bytes) -> None:
    answer = world.deliver(world.says(garbage))
    assert (answer.status, answer.error) == (None, NOT_HTTP)


@pytest.mark.parametrize("part", [b"HTTP", b"HTTP/1.1 200 O", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_answer_that_breaks_off_before_its_status_is_none(world: World, part: bytes) -> None:
    answer = world.deliver(world.says_and_closes(part))
    assert (answer.status, answer.error) == (None, CLOSED)


@pytest.mark.parametrize("part", [b"", b"X-Half: ", b"Content-Length: 9\r\n\r\npart"])
def test_an_answer_that_breaks_off_after_its_status_has_it(world: World, part: bytes) -> None:
    answer = world.deliver(world.says_and_closes(b"HTTP/1.1 201 Created\r\n" + part))
    assert (answer.ok, answer.status) == (True, 201)


def test_a_connection_that_is_reset_is_said_to_be_closed(world: World) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with own_socket(writer) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await world.receiver.read_request(reader)

    answer = world.deliver(reset)
    assert (answer.status, answer.error) == (None, CLOSED)


def test_a_change_of_protocol_is_a_failure(world: World) -> None:
    answer = world.deliver(
        world.says_for_ever(b"HTTP/1.1 101 Go\r\nUpgrade: ws\r\nConnection: upgrade\r\n\r\n", b"x" * 65536)
    )
    assert (answer.status, answer.error) == (101, "The server answered 101 (Switching Protocols).")


# Each would go on for a gigabyte and more.
ENDLESS = {
    "status line": (b"HTTP/1.1 200 ", b"x" * 65536, None, TOO_LONG),
    "interim answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, None, TOO_LONG),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Again: yes\r\n" * 4000, 200, None),
    "one header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 65536, 200, None),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", b"x" * 65536, 200, None),
    "body without a length": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536, 200, None),
    "compressed body": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        gzip.compress(b"x" * 10_000_000),
        200,
        None,
    ),
    "chunk": (CHUNKED + b"40000000\r\n", b"x" * 65536, 200, None),
    "chunks": (CHUNKED, (b"4000\r\n" + b"x" * 16384 + b"\r\n") * 4, 200, None),
    "chunk size": (CHUNKED, b"0" * 65536, 200, None),
    "chunk extension": (CHUNKED + b"1;", b"x" * 65536, 200, None),
    "trailers": (CHUNKED + b"0\r\n", b"X-Again: yes\r\n" * 4000, 200, None),
    "garbage": (b"", b"\0" * 65536, None, NOT_HTTP),
    "answers": (b"", OK * 1500, 200, None),
}


@pytest.mark.parametrize(("start", "again", "status", "error"), ENDLESS.values(), ids=ENDLESS)
def test_an_answer_without_end_is_cut_off_in_little_memory(
    world: World, start: bytes, again: bytes, status: int | None, error: str | None
) -> None:
    tracemalloc.start()
    try:
        answer = world.deliver(world.says_for_ever(start, again))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (answer.status, answer.error) == (status, error)
    assert len(answer.body) <= LONGEST_BODY
    assert answer.duration_ms < HUNG_MS
    assert peak < 8_000_000
    assert world.receiver.sent < 32_000_000  # sockets have buffers of their own


@pytest.mark.parametrize("header", [b"X-Again: yes\r\n", b"x" * 1000])
def test_endless_headers_are_cut_off(world: World, header: bytes) -> None:
    answer = world.deliver(world.says_for_ever(b"HTTP/1.1 403 No\r\n", header))
    assert (answer.status, answer.error) == (403, "The server answered 403 (Forbidden).")
    assert answer.duration_ms < HUNG_MS


def test_many_tiny_chunks_are_read_up_to_the_limit(world: World) -> None:
    start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = world.deliver(world.says_for_ever(start, b"1\r\nx\r\n" * 100))
    assert (answer.ok, answer.body) == (True, b"x" * LONGEST_BODY)
    assert answer.duration_ms < HUNG_MS


def test_any_bytes_at_all_give_an_answer(world: World) -> None:
    tokens = [
        b"HTTP/1.1 200 OK\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n",
        b"\n",
        b"5\r\n",
    ]
    pieces = st.lists(st.sampled_from(tokens) | st.binary(max_size=8), max_size=8)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(pieces=pieces)
    def any_bytes(pieces: list[bytes]) -> None:
        answer = world.deliver(world.says_and_closes(*pieces))
        assert answer.ok == (answer.error is None)

    any_bytes()
