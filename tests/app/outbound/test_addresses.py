"""Which addresses are dialled."""

from __future__ import annotations

import socket

import pytest

from app.outbound import Answer, Reason, failed
from tests.app.outbound.world import (
    OK,
    Names,
    NoSuchName,
    World,
)


def test_only_https_is_sent_to(world: World) -> None:
    answer = world.deliver(world.says(OK), plain=True, address="http://127.0.0.1:{port}/")
    assert answer == failed(Reason.BAD_ADDRESS, "The address must begin with https://.", may_have_arrived=False)
    assert world.receiver.accepted == 0


def test_a_private_address_is_not_dialled(world: World) -> None:
    answer = world.deliver(world.says(OK), allowed=())
    assert (answer.status, answer.error) == (None, "127.0.0.1 is not a public address.")
    assert world.receiver.accepted == 0


@pytest.mark.parametrize(
    "private",
    [
        "127.0.0.1",
        "10.0.0.5",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "::",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:0:7f00:1",
        "64:ff9b::7f00:1",
        "2001::80ff:fffe",
        "2002:7f00:1::",
        "fe80::1%lo",
        "fd00::1",
    ],
)  # fmt: skip
def test_a_name_that_leads_to_a_private_address_is_not_dialled(world: World, private: str) -> None:
    names = Names(shop=[[private]])
    answer = world.deliver(world.says(OK), allowed=(), address="https://shop.example:{port}/", resolver=names)
    assert (answer.status, answer.error) == (None, f"The address resolves to {private}, which is not public.")
    assert world.receiver.accepted == 0


# 127.0.0.1 stands for a public address in these: it is the only one allowed.
@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.5", "127.0.0.1", "169.254.169.254"], ["127.0.0.1", "::1"], ["::1", "fe80::1", "127.0.0.1"]],
)
def test_private_addresses_among_others_are_not_dialled(world: World, addresses: list[str]) -> None:
    answer = world.deliver(
        world.says(OK),
        address="https://shop.example:{port}/",
        resolver=Names(shop=[addresses]),
        allowed=["127.0.0.1/32"],
    )
    assert answer.ok
    assert world.receiver.accepted == 1


REFUSED = "The connection was refused."


@pytest.mark.parametrize(
    ("addresses", "error"),
    [
        (["10.0.0.5", "10.0.0.6"], "The address resolves to 10.0.0.5, which is not public."),
        (["10.0.0.5", "::1"], "The address resolves to 10.0.0.5, which is not public."),
        (["127.0.0.1", "10.0.0.5"], REFUSED),
        (["::1", "127.0.0.1"], REFUSED),
        (["127.0.0.1", "127.0.0.2"], REFUSED),
        (["127.0.0.1", "ff02::1"], REFUSED),
    ],
)
def test_what_is_said_of_several_addresses_is_said_of_those_that_were_dialled(
    world: World, addresses: list[str], error: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        answer = world.deliver(
            world.says(OK),
            address=f"https://shop.example:{taken.getsockname()[1]}/",
            resolver=Names(shop=[addresses]),
            allowed=["127.0.0.0/8", "ff02::/16"],
        )
    assert (answer.status, answer.error) == (None, error)


def test_a_name_that_changes_its_answer_gains_nothing(world: World) -> None:
    names = Names(shop=[["127.0.0.1"], ["127.0.0.2"]])
    closing = world.says_and_closes(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async def story() -> tuple[Answer, Answer]:
        async with world.meeting(closing, resolver=names, allowed=["127.0.0.1/32"]) as (outbound, port):
            # Names are remembered for ten seconds, by host and port; a trailing dot makes another host of it.
            first = await outbound.post(f"https://shop.example:{port}/", b"", {})
            return first, await outbound.post(f"https://shop.example.:{port}/", b"", {})

    first, second = world.runner.run(story())
    assert first.ok
    assert second.error == "The address resolves to 127.0.0.2, which is not public."
    assert world.receiver.accepted == 1


def test_an_address_that_changes_between_check_and_use_gains_nothing(world: World) -> None:
    names = Names(shop=[["127.0.0.1"]])
    closing = world.says_and_closes(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async def story() -> tuple[Answer, Answer]:
        async with world.meeting(closing, resolver=names, allowed=["127.0.0.1/32"]) as (outbound, port):
            first = await outbound.post(f"https://shop.example:{port}/", b"", {})
            names.given[0] = (socket.AF_INET, "127.0.0.2")
            return first, await outbound.post(f"https://shop.example:{port}/", b"", {})

    first, second = world.runner.run(story())
    assert first.ok
    assert second.error == "The address resolves to 127.0.0.2, which is not public."
    assert world.receiver.accepted == 1


def test_the_systems_resolver_is_asked_by_default(world: World) -> None:
    answer = world.deliver(world.says(OK), address="https://localhost:{port}/")
    assert answer.ok


def test_a_name_without_an_address_is_said_to_be_unknown(world: World) -> None:
    answer = world.deliver(world.says(OK), address="https://shop.example:{port}/", resolver=NoSuchName())
    assert (answer.status, answer.error) == (None, "The name shop.example could not be resolved.")
