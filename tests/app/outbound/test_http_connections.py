"""When a connection is kept for the next request."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from app.outbound import Answer
from app.outbound.http_connections import LONGEST_BODY
from tests.app.outbound.world import (
    CLOSED,
    OK,
    World,
    own_socket,
)


def test_connections_are_reused(world: World) -> None:
    assert world.deliver(world.says(OK), times=5).ok
    assert (world.receiver.accepted, len(world.receiver.requests)) == (1, 5)


def test_a_connection_is_reused_after_a_failure_that_was_read_to_its_end(world: World) -> None:
    world.deliver(world.says(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"), times=3)
    assert world.receiver.accepted == 1


def test_a_connection_the_server_closed_is_replaced(world: World) -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    assert world.deliver(world.says_and_closes(closing), times=3).ok
    assert world.receiver.accepted == 3


def test_an_answer_nobody_asked_for_is_no_later_requests_answer(world: World) -> None:
    async def story() -> tuple[Answer, Answer]:
        asked, dropped = asyncio.Event(), asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            writer.write(OK)
            await asked.wait()
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
            with suppress(OSError):
                await reader.read()
            dropped.set()

        async with world.meeting(talk) as (outbound, port):
            first = await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            asked.set()
            await dropped.wait()
            return first, await outbound.post(f"https://127.0.0.1:{port}/", b"", {})

    first, second = world.runner.run(story())
    assert (first.status, second.status, world.receiver.accepted) == (200, 200, 2)


def hang_up(writer: asyncio.StreamWriter) -> None:
    with own_socket(writer) as connection:
        connection.shutdown(socket.SHUT_RDWR)


def speak_unasked(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("act", [hang_up, speak_unasked])
def test_a_pooled_connection_that_has_ended_is_not_sent_on(
    world: World, act: Callable[[asyncio.StreamWriter], None], steps: int
) -> None:
    async def story() -> Answer:
        async with world.meeting(world.says(OK)) as (outbound, port):
            await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            act(world.receiver.writers[0])
            [pooled] = outbound._pool._open
            assert pooled._incoming.poll(20_000)  # it has arrived, which may take a moment on a busy machine
            for _ in range(steps):  # of the loop, in which it notices the end bit by bit
                await asyncio.sleep(0)
            return await outbound.post(f"https://127.0.0.1:{port}/", b"", {})

    answer = world.runner.run(story())
    assert (answer.status, answer.error) == (200, None)
    assert (world.receiver.accepted, len(world.receiver.requests)) == (2, 2)


def test_a_request_that_may_have_been_received_is_not_sent_again(world: World) -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await world.receiver.read_request(reader)
        writer.write(OK)
        await world.receiver.read_request(reader)

    answer = world.deliver(once, times=2)
    assert (answer.status, answer.error) == (None, CLOSED)
    assert (world.receiver.accepted, len(world.receiver.requests)) == (1, 2)


@pytest.mark.parametrize(
    "again",
    [
        OK,
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0",
    ],
)
def test_a_connection_that_answers_more_than_was_asked_is_dropped(world: World, again: bytes) -> None:
    answer = world.deliver(world.says(OK, again), times=2)
    assert (answer.status, answer.error) == (200, None)
    assert world.receiver.accepted == 2


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_body_where_none_may_be_is_ignored_with_its_connection(world: World, status: bytes) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\nextra"), times=2)
    assert (answer.status, answer.body) == (int(status[:3]), b"")
    assert (world.receiver.accepted, len(world.receiver.requests)) == (2, 2)


def test_a_body_of_just_16_kib_is_kept_whole_with_its_connection(world: World) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % LONGEST_BODY
    answer = world.deliver(world.says(head, b"x" * LONGEST_BODY), times=2)
    assert answer.body == b"x" * LONGEST_BODY
    assert world.receiver.accepted == 1


def test_a_longer_body_is_cut_and_its_connection_dropped(world: World) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n"
    answer = world.deliver(world.says_for_ever(head, b"x" * 65536), times=2)
    assert (answer.ok, answer.body) == (True, b"x" * LONGEST_BODY)
    assert world.receiver.accepted == 2


KEPT = {
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
    "HTTP/1.0 that is kept": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1),
    "close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 2),
    "close among others": (b"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 2\r\n\r\nok", 2),
    "chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Encoding: gzip\r\n\r\n",
        1,
    ),
    "interim answers": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n" + OK, 1),
    "empty lines after it": (OK + b"\r\n\r\n", 1),
}


@pytest.mark.parametrize(("said", "accepted"), KEPT.values(), ids=KEPT)
def test_a_connection_is_kept_if_the_server_keeps_it_and_the_answer_has_ended(
    world: World, said: bytes, accepted: int
) -> None:
    answer = world.deliver(world.says(said), times=2)
    assert (answer.status, answer.error, answer.body) == (200, None, b"ok")
    assert world.receiver.accepted == accepted
