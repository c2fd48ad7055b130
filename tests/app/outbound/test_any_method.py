"""Requests of any method."""

from __future__ import annotations

from typing import Any

import pytest

from app.outbound import Answer
from tests.app.outbound.world import OK, World

CHOSEN = {"most_bytes": 100, "timeout_seconds": 20}


def ask(world: World, method: str, body: bytes = b"", headers: dict[str, str] | None = None, **chosen: Any) -> Answer:
    """A request to a receiver that says OK, or what `says` has."""
    said = chosen.pop("says", OK)
    times = chosen.pop("times", 1)

    async def story() -> Answer:
        async with world.meeting(world.says(said)) as (outbound, port):
            for _ in range(times):
                address = f"https://127.0.0.1:{port}/things?a=b"
                answer = await outbound.request(method, address, body, headers or {}, **(CHOSEN | chosen))
            return answer

    return world.runner.run(story())


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_a_request_without_a_body_has_no_length(world: World, method: str) -> None:
    assert ask(world, method).ok
    head = world.receiver.requests[0]
    assert head.startswith(f"{method} /things?a=b HTTP/1.1\r\nHost: 127.0.0.1:".encode())
    assert b"content-length" not in head.lower()


@pytest.mark.parametrize(("method", "body"), [("PUT", b""), ("PATCH", b"{}"), ("POST", b"{}"), ("DELETE", b"{}")])
def test_a_request_with_a_body_has_its_length(world: World, method: str, body: bytes) -> None:
    assert ask(world, method, body).ok
    assert b"\r\nContent-Length: %d\r\n" % len(body) in world.receiver.requests[0]
    assert world.receiver.requests[0].endswith(b"\r\n\r\n" + body)


def test_the_headers_of_the_response_are_in_the_answer(world: World) -> None:
    said = b"HTTP/1.1 100 Go\r\nX-Early: 1\r\n\r\nHTTP/1.1 201 Made\r\nX-A: 1\r\nx-a: \xe9\r\nContent-Length: 0\r\n\r\n"
    answer = ask(world, "GET", says=said)
    assert answer.headers == (("x-a", "1"), ("x-a", "\xe9"), ("content-length", "0"))


def test_the_caller_sets_how_much_of_the_body_is_kept(world: World) -> None:
    said = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000
    whole = ask(world, "GET", says=said, most_bytes=100_000)
    cut = ask(world, "GET", says=said, most_bytes=99_999)
    none = ask(world, "GET", says=said, most_bytes=0)
    assert (len(whole.body), whole.is_whole) == (100_000, True)
    assert (len(cut.body), cut.is_whole) == (99_999, False)
    assert (none.ok, none.body, none.is_whole) == (True, b"", False)


def test_the_caller_sets_the_deadline(world: World) -> None:
    answer = ask(world, "GET", says=b"", timeout_seconds=0.3)
    assert (answer.error_code, answer.error) == ("timeout", "No answer within 0.3 seconds.")
    assert answer.may_have_arrived


def test_the_answer_to_head_has_no_body_whatever_its_length_says(world: World) -> None:
    answer = ask(world, "HEAD", says=b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n", times=2)
    assert (answer.ok, answer.body, answer.is_whole) == (True, b"", True)
    assert world.receiver.accepted == 2


def test_a_default_header_is_replaced_whatever_its_spelling(world: World) -> None:
    ask(world, "GET", headers={"user-agent": "Shop", "X-A": "1"})
    head = world.receiver.requests[0].lower()
    assert head.count(b"user-agent") == 1
    assert b"\r\nuser-agent: shop\r\nx-a: 1\r\n" in head


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("CONNECT", {}),
        ("get", {}),
        ("GET / HTTP/1.1\r\nX:", {}),
        ("", {}),
        ("GET", {"Host": "elsewhere"}),
        ("GET", {"content-length": "5"}),
        ("GET", {"Transfer-Encoding": "chunked"}),
        ("GET", {"CONNECTION": "close"}),
        ("GET", {"X-A": "1\r\nX-Evil: 1"}),
        ("GET", {"X-A": "1\nX-Evil: 1"}),
        ("GET", {"X-A": "\0"}),
        ("GET", {"X-A\r\nX-Evil": "1"}),
        ("GET", {"X A": "1"}),
        ("GET", {"X-A:": "1"}),
        ("GET", {"": "1"}),
        ("GET", {"X-É": "1"}),
        ("GET", {"X-A": "\ud800"}),
    ],
)
def test_a_method_or_header_that_is_not_the_callers_to_send_is_refused(
    world: World, method: str, headers: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"cannot be s|surrogates"):
        ask(world, method, headers=headers)
    assert world.receiver.accepted == 0


@pytest.mark.parametrize("address", ["http://127.0.0.1/", "https://10.0.0.1/", "https://user@127.0.0.1/"])
def test_the_same_addresses_are_refused_as_for_deliveries(world: World, address: str) -> None:
    async def story() -> Answer:
        async with world.meeting(world.says(OK)) as (outbound, _):
            return await outbound.request("GET", address, b"", {}, most_bytes=1, timeout_seconds=1)

    answer = world.runner.run(story())
    assert (answer.error_code, answer.may_have_arrived) == ("private_address", False)
