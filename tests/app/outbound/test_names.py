"""Name servers that are slow, silent or broken."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import ClassVar

import pytest

from app.outbound import Answer
from app.outbound import names as lookups
from tests.app.outbound.world import (
    AMPLE,
    HUNG_MS,
    OK,
    Names,
    SilentNames,
    SlowNames,
    World,
    no_more_than,
    sockets,
)


def test_a_silent_name_server_delays_no_other_name(world: World) -> None:
    async def story() -> Answer:
        names = SilentNames(shop=[["127.0.0.1"]])
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            hanging = [outbound.post("https://silent.example/", b"", {}) for _ in range(100)]
            answer = await outbound.post(f"https://shop.example:{port}/", b"", {})
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
            return answer

    answer = world.runner.run(story())
    assert answer.ok
    assert answer.duration_ms < HUNG_MS


def test_a_name_is_looked_up_once_however_many_wait_for_it(world: World) -> None:
    names = SlowNames(shop=[["127.0.0.1"]])

    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            posts = [outbound.post(f"https://shop.example:{port}/", b"", {}) for _ in range(20)]
            await asyncio.sleep(0.01)
            posts.pop(0).cancel()  # the first one asked, and the others still get what it asked for
            return await asyncio.gather(*posts)

    assert all(answer.ok for answer in world.runner.run(story()))
    assert names.asked == 1


@pytest.mark.parametrize(("old", "ok"), [(60, True), (0, False)])
def test_a_known_name_is_still_reached_while_its_name_server_is_silent(
    world: World, monkeypatch: pytest.MonkeyPatch, old: float, ok: bool
) -> None:
    monkeypatch.setattr(lookups, "REMEMBERED_SECONDS", 0)
    monkeypatch.setattr(lookups, "LATE_SECONDS", 0.1)
    monkeypatch.setattr(lookups, "OLD_SECONDS", old)
    names = SlowNames(shop=[["127.0.0.1"]])
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

    async def story() -> Answer:
        async with world.meeting(world.says(closing), resolver=names, timeout_seconds=AMPLE) as (outbound, port):
            assert (await outbound.post(f"https://shop.example:{port}/", b"", {})).ok
            names.seconds = 60
            return await outbound.post(f"https://shop.example:{port}/", b"", {})

    assert world.runner.run(story()).ok == ok
    assert names.asked == 2


def test_a_name_server_that_never_answers_fails_at_the_deadline_as_ours(world: World) -> None:
    address = "https://silent.example:{port}/"
    answer = world.deliver(world.says(OK), address=address, resolver=SilentNames(), timeout_seconds=0.3)
    assert (answer.error_code, answer.error) == ("ours", "Our resolver could not look up silent.example.")
    assert answer.duration_ms < HUNG_MS


def test_a_name_server_that_never_answers_is_at_fault_if_others_do_meanwhile(world: World) -> None:
    async def story() -> Answer:
        names = SilentNames(shop=[["127.0.0.1"]])
        async with world.meeting(world.says(OK), resolver=names, timeout_seconds=AMPLE) as (outbound, port):
            silent = outbound.post("https://silent.example/", b"", {})
            await asyncio.sleep(0.1)
            assert (await outbound.post(f"https://shop.example:{port}/", b"", {})).ok
            return await silent

    answer = world.runner.run(story())
    assert (answer.error_code, answer.error) == ("timeout", "No answer within 2 seconds.")


class BrokenNames(Names):
    """Fails for the names in `broken`."""

    broken: ClassVar[dict[str, OSError]] = {}

    async def resolve(self, host: str, port: int) -> list[tuple[int, str]]:
        if error := self.broken.get(host):
            raise error
        return await super().resolve(host, port)


TEMPORARY = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
CLOSING = OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (TEMPORARY, "ours", "Our resolver could not look up shop.example."),
        (socket.gaierror(socket.EAI_MEMORY, "No memory"), "ours", "Our resolver could not look up shop.example."),
        (OSError(errno.EMFILE, "Too many open files"), "ours", "We have too many connections open."),
        (socket.gaierror(socket.EAI_NONAME, "Unknown"), "dns", "The name shop.example could not be resolved."),
        (socket.gaierror(socket.EAI_NODATA, "No address"), "dns", "The name shop.example could not be resolved."),
    ],
)
def test_only_a_definite_answer_of_dns_is_the_receivers_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, error: OSError, code: str, sentence: str
) -> None:
    monkeypatch.setattr(BrokenNames, "broken", {"shop.example": error})
    answer = world.deliver(world.says(OK), address="https://shop.example:{port}/", resolver=BrokenNames())
    assert (answer.error_code, answer.error) == (code, sentence)


def test_a_name_that_keeps_failing_while_others_are_resolved_is_at_fault_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokenNames, "broken", {"shop.example": TEMPORARY})

    async def story() -> list[Answer]:
        names = BrokenNames(other=[["127.0.0.1"]])
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            hosts = ("shop", "shop", "other", "shop")
            return [await outbound.post(f"https://{host}.example:{port}/", b"", {}) for host in hosts]

    assert [answer.error_code for answer in world.runner.run(story())] == ["ours", "ours", "tls", "dns"]


@pytest.mark.parametrize(("old", "ok"), [(60, True), (0, False)])
def test_a_known_name_is_still_reached_while_the_resolver_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, old: float, ok: bool
) -> None:
    monkeypatch.setattr(lookups, "REMEMBERED_SECONDS", 0)
    monkeypatch.setattr(lookups, "OLD_SECONDS", old)

    async def story() -> Answer:
        names = BrokenNames(shop=[["127.0.0.1"]])
        async with world.meeting(world.says(CLOSING), resolver=names) as (outbound, port):
            assert (await outbound.post(f"https://shop.example:{port}/", b"", {})).ok
            monkeypatch.setattr(BrokenNames, "broken", {"shop.example": TEMPORARY})
            return await outbound.post(f"https://shop.example:{port}/", b"", {})

    answer = world.runner.run(story())
    assert (answer.ok, answer.is_ours) == (ok, not ok)


def test_a_name_that_has_gone_from_dns_is_not_reached_by_its_old_address(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "REMEMBERED_SECONDS", 0)

    async def story() -> Answer:
        names = BrokenNames(shop=[["127.0.0.1"]])
        async with world.meeting(world.says(CLOSING), resolver=names) as (outbound, port):
            assert (await outbound.post(f"https://shop.example:{port}/", b"", {})).ok
            gone = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            monkeypatch.setattr(BrokenNames, "broken", {"shop.example": gone})
            return await outbound.post(f"https://shop.example:{port}/", b"", {})

    assert world.runner.run(story()).error_code == "dns"


def test_waiting_for_a_thread_of_the_resolver_is_our_fault(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "RESOLVER_THREADS", 1)
    monkeypatch.setattr(lookups, "MOST_QUEUED_SECONDS", 0.2)
    answers = threading.Event()

    def getaddrinfo(*_: object, **__: object) -> list[object]:
        answers.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK)) as (outbound, _):
            posts = [outbound.post(f"https://{host}.example/", b"", {}) for host in "ab"]
            starved = await posts[1]
            answers.set()
            return [await posts[0], starved]

    asked, starved = world.runner.run(story())
    assert (asked.error_code, starved.error_code) == ("dns", "ours")


@contextmanager
def deaf_to_connections(address: str, port: int) -> Iterator[None]:
    """A listener whose queue is full, so that it answers nobody."""
    with socket.socket() as listener, ExitStack() as waiting:
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(4):
            waiter = waiting.enter_context(socket.socket())
            waiter.setblocking(False)
            waiter.connect_ex((address, port))
        yield


def test_an_address_that_is_silent_holds_up_the_next_for_a_head_start_only(world: World) -> None:
    names = Names(shop=[["127.0.0.2", "127.0.0.1"]])

    async def story() -> Answer:
        async with world.meeting(world.says(OK), resolver=names) as (outbound, port):
            with deaf_to_connections("127.0.0.2", port):
                before = sockets()
                answer = await outbound.post(f"https://shop.example:{port}/", b"", {})
                assert await no_more_than(before + 2)  # both ends of the connection that is kept
                return answer

    answer = world.runner.run(story())
    assert answer.ok
    assert 250 <= answer.duration_ms < HUNG_MS
