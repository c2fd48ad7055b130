"""What is left after a timeout or after closing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from app.outbound import Answer, dialling
from tests.app.outbound.world import (
    AMPLE,
    CLOSED,
    HUNG_MS,
    OK,
    SilentNames,
    World,
    no_more_than,
    sockets,
)


@pytest.mark.parametrize("moment", ["lookup", "handshake", "answer", "body"])
def test_a_request_that_runs_out_of_time_leaves_no_socket(world: World, moment: str) -> None:
    async def story() -> None:
        gone = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if moment == "handshake":
                await reader.read(1)
            else:
                await world.receiver.read_request(reader)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" if moment == "body" else b"")
            with suppress(OSError):
                await reader.read()
            gone.set()

        options: dict[str, Any] = {"resolver": SilentNames(), "plain": moment == "handshake", "timeout_seconds": AMPLE}
        async with world.meeting(talk, **options) as (outbound, port):
            before = sockets()
            host = "silent.example" if moment == "lookup" else "127.0.0.1"
            answer = await outbound.post(f"https://{host}:{port}/", b"", {})
            assert (answer.ok, answer.status) == ((True, 200) if moment == "body" else (False, None))
            if moment != "lookup":
                await asyncio.wait_for(gone.wait(), 20)
            assert await no_more_than(before)
            assert not outbound._pool._open

    world.runner.run(story())


def test_closing_leaves_no_socket_of_many_requests_under_way(world: World) -> None:
    async def story() -> list[Answer]:
        before = sockets()
        async with world.meeting(world.says(b"")) as (outbound, port):
            posts = [outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(30)]
            while len(world.receiver.requests) < 20:  # some are still shaking hands
                await asyncio.sleep(0.01)
            await outbound.close()
            answers = await asyncio.gather(*posts)
            assert not outbound._pool._open
        assert await no_more_than(before)
        return answers

    answers = world.runner.run(story())
    assert {(answer.status, answer.error) for answer in answers} == {(None, "The request could not be sent.")}
    assert max(answer.duration_ms for answer in answers) < HUNG_MS


def test_closing_during_a_handshake_leaves_no_socket(world: World) -> None:
    async def story() -> Answer:
        before = sockets()
        arrived = asyncio.Event()

        async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await reader.read()

        async with world.meeting(silence, plain=True, timeout_seconds=0.5) as (outbound, port):
            sending = outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            await arrived.wait()
            await outbound.close()
            answer = await sending
            assert not outbound._pool._open
        assert await no_more_than(before)
        return answer

    assert world.runner.run(story()).status is None


def test_a_connection_that_was_never_made_is_let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dial(*_: object) -> None:
        """As when a transport is lost in the handshake and does not say so."""

    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK)) as (outbound, port):
            monkeypatch.setattr(dialling.Dialler, "dial", dial)
            lost = await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            assert not outbound._pool._open
            monkeypatch.undo()
            return [lost, await outbound.post(f"https://localhost:{port}/", b"", {})]

    lost, kept = world.runner.run(story())
    assert (lost.status, lost.error, kept.ok) == (None, CLOSED, True)


def test_nothing_is_sent_after_closing(world: World) -> None:
    async def story() -> Answer:
        async with world.meeting(world.says(OK)) as (outbound, port):
            await outbound.close()
            return await outbound.post(f"https://localhost:{port}/", b"", {})

    answer = world.runner.run(story())
    assert (answer.status, answer.error_code, world.receiver.accepted) == (None, "ours", 0)


def test_closing_ends_a_request_under_way_as_failed(world: World) -> None:
    async def story() -> Answer:
        arrived = asyncio.Event()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            arrived.set()
            await reader.read()

        async with world.meeting(talk) as (outbound, port):
            sending = outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            await arrived.wait()
            await outbound.close()
            return await sending

    answer = world.runner.run(story())
    assert (answer.ok, answer.error_code) == (False, "ours")
    assert answer.duration_ms < HUNG_MS


def test_closing_twice_is_harmless(world: World) -> None:
    async def story() -> None:
        async with world.meeting(world.says(OK)) as (outbound, port):
            await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            await outbound.close()

    world.runner.run(story())
