"""What is sent, and what comes back."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from tests.app.outbound.world import (
    HUNG_MS,
    OK,
    World,
)


def test_a_2xx_is_a_success_with_its_body(world: World) -> None:
    answer = world.deliver(world.says(OK))
    assert (answer.ok, answer.status, answer.error, answer.body) == (True, 200, None, b"ok")
    assert 0 <= answer.duration_ms < HUNG_MS


def test_the_bytes_and_headers_given_are_those_sent(world: World) -> None:
    world.deliver(world.says(OK), body=b'{"name": "\xc3\xa9"}')
    head, _, body = world.receiver.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"name": "\xc3\xa9"}'
    assert head.startswith(b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nContent-Type: application/json" in head
    assert b"\r\nAccept-Encoding: identity" in head


@pytest.mark.parametrize(
    ("entered", "sent"),
    [
        ("", "/"),
        ("?a", "/?a"),
        ("/", "/"),
        ("//a//b/", "//a//b/"),
        ("/a/../b/./c", "/b/c"),
        ("/a%20b?c%20d+e", "/a%20b?c%20d+e"),
        ("/é/日本?ü=ß", "/%C3%A9/%E6%97%A5%E6%9C%AC?%C3%BC=%C3%9F"),
        ("/%C3%A9%2f%2F%3f%23", "/%C3%A9%2F%2F%3F%23"),
        ("/100%/%zz?%", "/100%25/%25zz?%25"),
        ("/%0d%0aX-Evil:%201%00", "/%0D%0AX-Evil:%201%00"),
        ("/a?b=/?:@&c=%26%3D%2B;d", "/a?b=/?:@&c=%26%3D%2B;d"),
        ('/<a>{b}|^`?"', "/%3Ca%3E%7Bb%7D%7C%5E%60?%22"),
    ],
)
def test_the_path_goes_out_as_it_was_entered_with_what_must_be_encoded(world: World, entered: str, sent: str) -> None:
    port = 0

    async def story() -> None:
        nonlocal port
        async with world.meeting(world.says(OK)) as (outbound, port):
            assert (await outbound.post(f"https://127.0.0.1:{port}{entered}", b"", {})).ok

    world.runner.run(story())
    lines = world.receiver.requests[0].split(b"\r\n")
    assert lines[0] == f"POST {sent} HTTP/1.1".encode()
    assert lines[1] == b"Host: 127.0.0.1:%d" % port
    assert b"X-Evil" not in b"".join(lines[1:])


@pytest.mark.parametrize(
    "evil", ["\r\nX-Evil: 1", "\nX-Evil: 1", "\rX-Evil: 1", "\r\n\r\nPOST / HTTP/1.1", "\0", "\ud800"]
)
@pytest.mark.parametrize("named", [True, False], ids=["name", "value"])
def test_a_header_that_would_break_its_line_is_not_sent(world: World, evil: str, named: bool) -> None:
    headers = {f"X-A{evil}": "a"} if named else {"X-A": f"a{evil}"}

    async def story() -> None:
        async with world.meeting(world.says(OK)) as (outbound, port):
            with pytest.raises(ValueError, match=r"line break|surrogates"):
                await outbound.post(f"https://127.0.0.1:{port}/", b"", headers)

    world.runner.run(story())
    assert world.receiver.accepted == 0


@pytest.mark.parametrize("evil", ["\r\n", "\n", "\r", "\0", "\u2028", "\ud800", "\t", " "])
@pytest.mark.parametrize(
    "place", ["https://127.0.0.1{evil}:{port}/", "https://127.0.0.1:{port}/a{evil}b", "{evil}https://127.0.0.1:{port}/"]
)
def test_an_address_that_would_break_its_line_is_not_dialled(world: World, place: str, evil: str) -> None:
    answer = world.deliver(world.says(OK), address=place.replace("{evil}", evil))
    assert answer.error == "The address contains a space, a backslash or a control character."
    assert world.receiver.accepted == 0


def test_a_204_is_a_success_without_a_body(world: World) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert (answer.ok, answer.status, answer.body) == (True, 204, b"")


@pytest.mark.parametrize(
    ("line", "status", "sentence"),
    [
        (b"410 Gone", 410, "The server answered 410 (Gone)."),
        (b"500 Oops", 500, "The server answered 500 (Internal Server Error)."),
        (b"599 Eh", 599, "The server answered 599."),
        (b"304 Not Modified", 304, "Redirects are not followed (304)."),
    ],
)
def test_any_other_status_is_a_failure_that_says_so(world: World, line: bytes, status: int, sentence: str) -> None:
    answer = world.deliver(world.says(b"HTTP/1.1 " + line + b"\r\nContent-Length: 0\r\n\r\n"))
    assert (answer.ok, answer.status, answer.error) == (False, status, sentence)


def test_a_redirect_is_not_followed(world: World) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example/\xff\r\nContent-Length: 0\r\n\r\n"
    answer = world.deliver(world.says(redirect))
    assert (answer.ok, answer.status) == (False, 302)
    assert answer.error == "Redirects are not followed (302 to https://elsewhere.example/?)."
    assert len(world.receiver.requests) == 1


def test_when_a_server_wants_to_be_asked_again(world: World) -> None:
    said = (
        b"HTTP/1.1 103 Early\r\nRetry-After: 1\r\n\r\nHTTP/1.1 429 No\r\nretry-after: 12\r\nContent-Length: 0\r\n\r\n"
    )
    assert world.deliver(world.says(said)).retry_after == "12"
    assert world.deliver(world.says(b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n")).retry_after == ""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(world: World, trap: int, status: int) -> None:
    target = f"https://127.0.0.1:{trap}/private"
    answer = world.deliver(
        world.says(f"HTTP/1.1 {status} Go\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
    )
    assert answer.error == f"Redirects are not followed ({status} to {target})."


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_compressed_body_is_noted_and_not_kept(world: World, coding: str) -> None:
    packed = (zlib.compress if coding == "deflate" else gzip.compress)(b"x" * 10_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n"
    answer = world.deliver(world.says(head.encode(), packed))
    assert answer.ok
    assert answer.body == f"(The body is compressed with {coding} and was not kept.)".encode()


def test_cookies_are_not_kept(world: World) -> None:
    cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    world.deliver(world.says(cookie), times=2)
    assert b"cookie" not in world.receiver.requests[1].lower()


def test_proxies_and_passwords_of_the_environment_are_ignored(
    world: World, trap: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{trap}")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.delenv("no_proxy", raising=False)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login guest password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert world.deliver(world.says(OK)).ok
    assert b"authorization" not in world.receiver.requests[0].lower()
