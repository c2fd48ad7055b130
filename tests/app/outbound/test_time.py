"""Servers that take their time."""

from __future__ import annotations

import asyncio

import pytest

from tests.app.outbound.world import (
    AMPLE,
    HUNG_MS,
    OK,
    World,
)


def test_a_server_that_never_answers_fails_at_the_deadline(world: World) -> None:
    answer = world.deliver(world.says(b""), timeout_seconds=0.3)
    assert (answer.ok, answer.status, answer.error) == (False, None, "No answer within 0.3 seconds.")
    assert 300 <= answer.duration_ms < HUNG_MS


def test_a_server_that_never_shakes_hands_fails_at_the_deadline(world: World) -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    answer = world.deliver(silence, plain=True, timeout_seconds=1)
    assert answer.error == "No answer within 1 second."
    assert answer.duration_ms < HUNG_MS


def test_a_body_that_hangs_leaves_the_success_and_what_came(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"), timeout_seconds=AMPLE)
    assert (answer.ok, answer.status, answer.error, answer.body) == (True, 200, None, b"part")
    assert answer.duration_ms < HUNG_MS


@pytest.mark.parametrize(
    ("start", "dripped", "status", "error"),
    [
        (b"", b"HTTP/1.1 200 " + b"OK" * 1000, None, "No answer within 2 seconds."),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", None, "No answer within 2 seconds."),
        (b"HTTP/1.1 204 No Content\r\n", b"X-Again: yes\r\n", 204, None),
        (b"HTTP/1.1 500 No\r\n", b"X-Again: yes\r\n", 500, "The server answered 500 (Internal Server Error)."),
        (
            b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n",
            b"x",
            500,
            "The server answered 500 (Internal Server Error).",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x", 200, None),
    ],
    ids=["status line", "interim answers", "headers", "headers of a failure", "body", "chunk extension"],
)
def test_an_answer_that_drips_ends_at_the_deadline(
    world: World, start: bytes, dripped: bytes, status: int | None, error: str | None
) -> None:
    answer = world.deliver(world.drips(start, dripped), timeout_seconds=AMPLE)
    assert (answer.status, answer.error) == (status, error)
    assert len(answer.body) < 1000
    assert AMPLE * 1000 <= answer.duration_ms < HUNG_MS


def test_a_handshake_that_drips_ends_at_the_deadline(world: World) -> None:
    talk = world.drips(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"x", at_once=True)
    answer = world.deliver(talk, plain=True, timeout_seconds=0.3)
    assert answer.error == "No answer within 0.3 seconds."
    assert answer.duration_ms < HUNG_MS


@pytest.mark.parametrize(
    ("said", "status", "error"),
    [(b"", None, "No answer within 2 seconds."), (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, None)],
    ids=["says nothing", "answers early"],
)
def test_a_server_that_never_reads_the_request_is_bounded(
    world: World, said: bytes, status: int | None, error: str | None
) -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(said)
        await asyncio.Event().wait()

    answer = world.deliver(deaf, timeout_seconds=AMPLE, body=b"x" * 5_000_000)
    assert (answer.status, answer.error) == (status, error)
    assert answer.duration_ms < HUNG_MS


def test_a_status_line_is_enough_even_if_the_headers_hang(world: World) -> None:
    answer = world.deliver(
        world.says(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nX-"), timeout_seconds=AMPLE
    )
    assert (answer.ok, answer.status, answer.error) == (True, 202, None)


def test_half_a_status_line_is_not_enough(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 200 O"), timeout_seconds=0.3)
    assert (answer.ok, answer.status) == (False, None)


def test_a_status_line_of_an_earlier_answer_counts_for_nothing(world: World) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await world.receiver.read_request(reader)
        writer.write(OK)
        await world.receiver.read_request(reader)
        await reader.read()

    answer = world.deliver(once, times=2, timeout_seconds=AMPLE)
    assert (answer.status, world.receiver.accepted) == (None, 1)
