"""The pool of connections, with a dialler that the test controls."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from app.outbound import pool
from app.outbound.dialling import Dialler
from app.outbound.http_connections import Connection
from app.outbound.pool import OPENING, Pool

SERVER = "shop.example", 443


class Line(asyncio.Transport):
    """A connection that carries nothing."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__({"socket": end})
        self._closing = False

    def is_closing(self) -> bool:
        return self._closing

    def abort(self) -> None:
        self._closing = True


class Lines:
    """A dialler whose calls are answered by the test."""

    def __init__(self, stack: ExitStack) -> None:
        self.calls: list[tuple[asyncio.Future[None], Connection]] = []
        self._stack = stack

    async def dial(self, host: str, port: int, connection: Connection) -> None:
        call: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls.append((call, connection))
        await call

    def answer(self, number: int) -> Connection:
        """Makes the connection of a call; they are numbered in their order."""
        call, connection = self.calls[number]
        ends = socket.socketpair()
        for end in ends:
            self._stack.enter_context(end)
        connection.connection_made(Line(ends[0]))
        call.set_result(None)
        return connection

    def refuse(self, number: int) -> None:
        self.calls[number][0].set_exception(ConnectionRefusedError())


@pytest.fixture
def lines() -> Iterator[Lines]:
    with ExitStack() as stack:
        yield Lines(stack)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE_SECONDS", 3600)


def told(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


async def some_rounds() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def asked(connections: Pool, number: int) -> list[asyncio.Task[Connection]]:
    return [asyncio.create_task(connections.take(*SERVER, int)) for _ in range(number)]


def made(lines: Lines, most_open: int = 1000) -> Pool:
    return Pool(cast(Dialler, lines), most_open)


async def busy(lines: Lines, waiting: int) -> tuple[Pool, Connection, list[asyncio.Task[Connection]]]:
    """A pool with one connection in use, as many opening as may be, and `waiting` requests in the queue."""
    connections = made(lines)
    tasks = asked(connections, OPENING + 2 + waiting)  # when one is open, two more are let open
    await some_rounds()
    opened = lines.answer(0)
    await some_rounds()
    return connections, opened, tasks[OPENING + 2 :]


def test_only_so_many_are_opened_at_once_and_the_next_when_one_is_open(lines: Lines) -> None:
    async def story() -> None:
        tasks = asked(made(lines), 2 * OPENING)
        await some_rounds()
        assert len(lines.calls) == OPENING

        opened = lines.answer(0)
        await some_rounds()

        assert tasks[0].result() is opened
        assert len(lines.calls) == OPENING + 2  # the next one, and one more at once as it went well

    told(story())


def test_fewer_are_opened_at_once_while_handshakes_take_longer_than_they_must(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "STEADY_TIMES", 0)

    async def story() -> None:
        asked(made(lines), 3 * OPENING)
        await some_rounds()
        for number in range(OPENING):
            lines.answer(number)
            await some_rounds()
        assert len(lines.calls) == OPENING + 1

        lines.answer(OPENING)
        await some_rounds()
        assert len(lines.calls) == OPENING + 2

    told(story())


def test_who_waits_longest_gets_what_another_is_done_with(lines: Lines) -> None:
    async def story() -> None:
        connections, opened, [first, second] = await busy(lines, 2)

        connections.give_back(*SERVER, opened)
        await some_rounds()

        assert first.result() is opened
        assert not second.done()
        assert connections.idle_one(*SERVER) is None

    told(story())


def test_one_that_broke_off_as_it_was_passed_on_is_replaced(lines: Lines) -> None:
    async def story() -> None:
        connections, opened, [waiting] = await busy(lines, 1)
        calls = len(lines.calls)

        connections.give_back(*SERVER, opened)
        opened.abort()
        await some_rounds()

        assert not waiting.done()
        assert len(lines.calls) == calls + 1

    told(story())


@pytest.mark.parametrize("how", ["refused", "not kept", "cancelled"])
def test_one_that_ends_makes_room_for_the_next(lines: Lines, how: str) -> None:
    async def story() -> None:
        connections, opened, _ = await busy(lines, 1)
        calls = len(lines.calls)

        match how:
            case "refused":
                lines.refuse(1)
            case "not kept":
                opened.abort()
                connections.give_back(*SERVER, opened)
            case "cancelled":
                lines.calls[1][0].cancel()
        await some_rounds()

        assert len(lines.calls) == calls + 1

    told(story())


def test_what_was_for_one_that_gave_up_goes_to_the_next(lines: Lines) -> None:
    """First a connection, then the turn to open one, each where the task is cancelled as it gets it."""

    async def story() -> None:
        connections, opened, [first, second, third, fourth] = await busy(lines, 4)
        calls = len(lines.calls)

        connections.give_back(*SERVER, opened)
        first.cancel()
        lines.refuse(1)
        await asyncio.sleep(0)
        third.cancel()
        await some_rounds()

        assert first.cancelled()
        assert third.cancelled()
        assert second.result() is opened
        assert not fourth.done()
        assert len(lines.calls) == calls + 1

    told(story())


def test_one_that_comes_back_when_nobody_waits_any_more_is_kept(lines: Lines) -> None:
    async def story() -> None:
        connections, opened, [last] = await busy(lines, 1)

        connections.give_back(*SERVER, opened)
        last.cancel()
        await some_rounds()

        assert last.cancelled()
        assert connections.idle_one(*SERVER) is opened

    told(story())


def test_ever_more_are_opened_while_requests_wait_though_handshakes_hang(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "PATIENCE_SECONDS", 0.01)
    steps = []

    async def story() -> None:
        asked(made(lines), OPENING + 13)
        while len(lines.calls) < OPENING + 13:
            await asyncio.sleep(0)
            steps.append(len(lines.calls) - OPENING)

    told(story())
    assert sorted({step for step in steps if step > 0}) == [1, 4, 13]


def test_no_more_are_opened_than_there_is_room_for(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE_SECONDS", 0.01)

    async def story() -> None:
        connections = made(lines, most_open=2)
        tasks = asked(connections, 3)
        opened = lines.answer(await until(lines, 2) - 2)
        while connections._servers[SERVER]._pushed < 9:
            await asyncio.sleep(0.01)
        assert len(lines.calls) == 2

        opened.abort()
        connections.give_back(*SERVER, opened)
        await until(lines, 3)
        assert not tasks[2].done()

    told(story())


async def until(lines: Lines, calls: int) -> int:
    while len(lines.calls) < calls:
        await asyncio.sleep(0)
    return calls


def test_closing_ends_those_that_wait(lines: Lines) -> None:
    async def story() -> None:
        connections = made(lines)
        tasks = asked(connections, OPENING + 3)
        await some_rounds()

        connections.close()
        await some_rounds()

        for task in tasks[OPENING:]:
            with pytest.raises(ConnectionAbortedError):
                task.result()
        assert len(lines.calls) == OPENING

    told(story())
