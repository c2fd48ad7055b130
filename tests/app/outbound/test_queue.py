"""Requests that wait for a connection, and how many are open."""

from __future__ import annotations

import asyncio
import os
import resource
from collections import Counter
from collections.abc import Iterator

import pytest

from app.outbound import Answer, pool
from app.outbound import clients as door
from tests.app.outbound.world import (
    AMPLE,
    AUTHORITY,
    OK,
    Names,
    World,
    no_more_than,
    sockets,
    together,
)


def test_requests_that_come_together_share_connections(world: World) -> None:
    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK)) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, 300))

    assert all(answer.ok for answer in world.runner.run(story()))
    assert world.receiver.accepted < 150


def test_requests_that_wait_get_connections_of_their_own_where_none_comes_free(world: World) -> None:
    number = 4 * pool.OPENING

    async def story() -> list[Answer]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await world.receiver.read_request(reader)
            while len(world.receiver.requests) < number:
                await asyncio.sleep(0.01)
            writer.write(OK)

        async with world.meeting(talk) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, number))

    assert all(answer.ok for answer in world.runner.run(story()))
    assert world.receiver.accepted == number


async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


def test_a_server_that_is_slow_to_connect_delays_nobody_in_our_queue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first connection is quick, all others are slow, and each is closed after its answer."""
    monkeypatch.setattr(door, "MOST_QUEUED_SECONDS", 120)
    number = 700
    connecting: list[int] = []

    def delay() -> float:
        connecting.append(len(connecting) + 1 - world.receiver.accepted)
        return 0.35 if len(connecting) > 1 else 0.14

    async def story() -> list[Answer]:
        talk = world.says_and_closes(OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        async with world.meeting(talk, delay=delay, timeout_seconds=120) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, number))

    answers = world.runner.run(story())
    assert Counter(answer.error for answer in answers) == {None: number}
    assert max(connecting) > 10 * pool.OPENING


def test_what_waits_too_long_in_our_queue_is_our_fault(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_OPEN", 2)
    monkeypatch.setattr(door, "MOST_QUEUED_SECONDS", 0.3)

    async def story() -> list[Answer]:
        async with world.meeting(silence, plain=True, timeout_seconds=AMPLE) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, 5))

    answers = world.runner.run(story())
    assert Counter(answer.error_code for answer in answers) == {"timeout": 2, "ours": 3}
    assert {answer.error for answer in answers if answer.is_ours} == {"The request waited too long for a connection."}
    assert not any(answer.may_have_arrived for answer in answers)
    assert world.receiver.accepted == 2


def test_the_deadline_begins_when_the_request_leaves_our_queue(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_OPEN", 1)
    monkeypatch.setattr(door, "MOST_QUEUED_SECONDS", 60)

    async def story() -> list[Answer]:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await world.receiver.read_request(reader)
                await asyncio.sleep(2)
                writer.write(OK)

        async with world.meeting(talk, timeout_seconds=3.5) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, 2))

    answers = world.runner.run(story())
    assert [answer.error for answer in answers] == [None, None]
    assert max(answer.duration_ms for answer in answers) < 3500


def test_servers_without_connections_are_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.05)
    names = Names(silent=[[]], shop=[["127.0.0.1"]])

    async def story() -> None:
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            await outbound.post(f"https://shop.example:{port}/", b"", {})
            await asyncio.gather(*[outbound.post(f"https://silent.{n}.example:{port}/", b"", {}) for n in range(20)])
            while outbound._pool._servers:
                await asyncio.sleep(0.01)

    world.runner.run(story())


def test_an_idle_connection_that_is_too_old_is_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0)
    assert world.deliver(world.says(OK), times=3).ok
    assert world.receiver.accepted == 3


def test_idle_connections_are_closed_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.1)

    async def story() -> None:
        async with world.meeting(world.says(OK)) as (outbound, port):
            before = sockets()
            await asyncio.gather(*[outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(5)])
            assert sockets() > before
            assert await no_more_than(before)
            assert (await outbound.post(f"https://127.0.0.1:{port}/", b"", {})).ok

    world.runner.run(story())
    assert world.receiver.accepted == 6


def test_a_connection_that_is_idle_is_closed_to_make_room(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_OPEN", 8)
    letters = "abcdefghi"

    async def story() -> None:
        names = Names(**{letter: [["127.0.0.1"]] for letter in letters})
        certificate = AUTHORITY.issue_cert("*.shop.example")
        async with world.meeting(world.says(OK), resolver=names, certificate=certificate) as (outbound, port):
            for letter in letters + "ica":  # the one used first is closed for "i", and then opened again
                assert (await outbound.post(f"https://{letter}.shop.example:{port}/", b"", {})).ok
            assert len(outbound._pool._open) == 8

    world.runner.run(story())
    assert world.receiver.accepted == 10


# Descriptors


@pytest.fixture
def limit() -> Iterator[None]:
    """Puts the limit of open files back after the test."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def first_free() -> int:
    """The next descriptor. This process has more or fewer open, depending on the tests before."""
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


@pytest.mark.usefixtures("limit")
def test_the_limit_of_open_files_is_raised_for_the_connections(world: World) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free() + 100, hard))

    assert world.deliver(world.says(OK)).ok

    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(2 * door.MOST_OPEN, hard), hard)


def test_no_more_connections_are_opened_than_the_limit_of_open_files_allows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "raise_open_limit", lambda _: 8)
    monkeypatch.setattr(door, "MOST_QUEUED_SECONDS", 0.3)

    async def story() -> list[Answer]:
        async with world.meeting(silence, plain=True, timeout_seconds=AMPLE) as (outbound, port):
            return await asyncio.gather(*together(outbound, port, 8))

    assert len(world.runner.run(story())) == 8
    assert world.receiver.accepted == 4


@pytest.mark.usefixtures("limit")
def test_running_out_of_descriptors_is_our_fault_and_closes_idle_connections(world: World) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def story() -> tuple[Answer, Answer]:
        names = Names(**{letter: [["127.0.0.1"]] for letter in "abcd"})
        certificate = AUTHORITY.issue_cert("*.shop.example", "127.0.0.1")
        async with world.meeting(world.says(OK), resolver=names, certificate=certificate) as (outbound, port):
            for letter in "abcd":
                assert (await outbound.post(f"https://{letter}.shop.example:{port}/", b"", {})).ok
            left_out = first_free()
            resource.setrlimit(resource.RLIMIT_NOFILE, (left_out, hard))
            failed = await outbound.post(f"https://127.0.0.1:{port}/", b"", {})
            assert len(outbound._pool._open) == 2
            resource.setrlimit(resource.RLIMIT_NOFILE, (left_out + 100, hard))
            return failed, await outbound.post(f"https://127.0.0.1:{port}/", b"", {})

    failed, later = world.runner.run(story())
    assert (failed.error_code, failed.error) == ("ours", "We have too many connections open.")
    assert later.ok
