"""Raw bytes that are hardly HTTP, sent to the real server: each gets one sound response, or none."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psutil
import pytest

from tests.journeys.audit import rows
from tests.journeys.logs import lines
from tests.journeys.shops import Shop, open_shop
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack


@dataclass(frozen=True)
class Raw:
    """A raw response: its status, its head as text, its body."""

    status: int
    head: str
    body: bytes

    def header(self, name: str) -> str:
        [value] = re.findall(rf"(?im)^{name}: (.*?)\r$", self.head)
        return str(value)


@pytest.fixture(scope="module")
def workers(broadly_running: Stack) -> set[int]:
    broadly_running.processes.wait_ready()
    return worker_pids(broadly_running)


@pytest.fixture(scope="module")
def opened(running: Stack, broadly_running: Stack) -> Iterator[Shop]:
    with Receiver(running.certificates.ca_file.parent) as receiver:
        yield open_shop(broadly_running, receiver, "Raw")


@pytest.fixture
def shop(broad: Stack, opened: Shop, workers: set[int]) -> Iterator[Shop]:
    """After each test no web process has died, and the next request is served."""
    yield opened
    assert len(opened.caller().get("webhooks/endpoints")) == 1
    assert worker_pids(broad) == workers


def worker_pids(stack: Stack) -> set[int]:
    return {child.pid for pid in stack.processes.pids("web") for child in psutil.Process(pid).children()}


def send(stack: Stack, data: bytes, seconds: float = 10) -> list[Raw]:
    """All responses to these bytes until the server closes the connection. Fails if it does not."""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=seconds) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before it was all sent
        return answers_in(read_all(connection))


def read_all(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def answers_in(data: bytes) -> list[Raw]:
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        text = head.decode("latin-1") + "\r\n"
        length = int((re.findall(r"(?i)content-length: (\d+)", text) or ["0"])[0])
        found.append(Raw(int(text.split()[1]), text, data[:length]))
        data = data[length:]
    return found


def is_sound_refusal(answer: Raw, sent: bytes = b"") -> bool:
    """Asserts that it is a complete problem that echoes nothing of the request."""
    document = json.loads(answer.body)
    assert 400 <= answer.status < 500, answer
    assert answer.header("Content-Type") == "application/problem+json"
    assert document["traceId"] == answer.header("X-Request-Id")
    assert document["status"] == answer.status
    assert {"type", "title", "detail"} <= document.keys()
    assert "injected" not in answer.head
    assert b"injected" not in answer.body
    return True


def request(shop: Shop, line: str, *headers: str, body: bytes = b"") -> bytes:
    """A request of the shop; `line` has no version."""
    head = "\r\n".join([f"{line} HTTP/1.1", "Host: bellhop", f"Authorization: Bearer {shop.token}", *headers])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def jobs(stack: Stack, shop: Shop) -> int:
    return int(rows(stack, "SELECT count(*) FROM jobs WHERE workspace_id = %s", shop.workspace_id)[0][0])


# Smuggling: a request with an ambiguous end closes the connection.

JSON = "Content-Type: application/json"
INNER = b"GET /api/v1/smuggled HTTP/1.1\r\nHost: bellhop\r\n\r\n"
BODY = b'{"external_id": "raw"}'
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
AMBIGUOUS = {
    "a length and chunks": (["Content-Length: 4", "Transfer-Encoding: chunked"], CHUNKED + INNER),
    "chunks and a length": (["Transfer-Encoding: chunked", "Content-Length: 6"], b"0\r\n\r\n" + INNER),
    "two lengths": ([f"Content-Length: {len(BODY)}", "Content-Length: 0"], BODY + INNER),
    "the same length twice": ([f"Content-Length: {len(BODY)}"] * 2, BODY + INNER),
    "a list of lengths": ([f"Content-Length: {len(BODY)}, {len(BODY)}"], BODY + INNER),
    "a length with a sign": ([f"Content-Length: +{len(BODY)}"], BODY + INNER),
    "a length below zero": (["Content-Length: -1"], BODY + INNER),
    "a hexadecimal length": (["Content-Length: 0x16"], BODY + INNER),
    "a length in other digits": (["Content-Length: \xb2"], BODY + INNER),
    "a length that is endless": ([f"Content-Length: {'9' * 5000}"], BODY + INNER),
    "chunks twice": (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], CHUNKED + INNER),
    "chunked, identity": (["Transfer-Encoding: chunked, identity"], CHUNKED + INNER),
    "an unknown coding": (["Transfer-Encoding: xchunked"], CHUNKED + INNER),
    "a coding with a vertical tab": (["Transfer-Encoding: \x0bchunked"], CHUNKED + INNER),
    "a coding without chunks": (["Transfer-Encoding: gzip"], CHUNKED + INNER),
    "a space before the colon": (["Transfer-Encoding : chunked", "Content-Length: 0"], CHUNKED + INNER),
    "a folded header": (["Transfer-Encoding:\r\n chunked"], CHUNKED + INNER),
    "a header without a colon": (["injected"], INNER),
    "a header without a name": ([": injected"], INNER),
    "NUL in a header": (["X-Request-Id: injected\x00"], INNER),
    "a bare carriage return in a header": (["X-Request-Id: a\rSet-Cookie: injected=1"], INNER),
    "a bare line end in a header": (["X-Request-Id: a\nSet-Cookie: injected=1"], INNER),
    "a bare line end in a preference": (["Prefer: wait=1\nSet-Cookie: injected=1"], INNER),
    "a bare line end in a key": (["Idempotency-Key: a\nSet-Cookie: injected=1"], INNER),
    "no hexadecimal chunk": (["Transfer-Encoding: chunked"], b"zz\r\ninjected\r\n0\r\n\r\n" + INNER),
    "a chunk below zero": (["Transfer-Encoding: chunked"], b"-1\r\ninjected\r\n0\r\n\r\n" + INNER),
    "a chunk with a sign": (["Transfer-Encoding: chunked"], b"+5\r\nhello\r\n0\r\n\r\n" + INNER),
    "a chunk that is longer than it says": (["Transfer-Encoding: chunked"], b"2\r\ninjected\r\n0\r\n\r\n" + INNER),
    "a chunk ended by a bare line end": (["Transfer-Encoding: chunked"], b"2\n{}\n0\n\n" + INNER),
    "a chunk of 2**64": (["Transfer-Encoding: chunked"], b"10000000000000000\r\n" + BODY),
    "chunks that do not end": (["Transfer-Encoding: chunked"], CHUNKED[:-5]),
    "a length in a trailer": (["Transfer-Encoding: chunked"], CHUNKED[:-2] + b"Content-Length: 5\r\n\r\n" + INNER),
}


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_a_request_whose_end_is_in_doubt_is_refused_once_and_nothing_behind_it_is_read(
    broad: Stack, shop: Shop, what: str
) -> None:
    headers, body = AMBIGUOUS[what]
    before = jobs(broad, shop)

    answers = send(
        broad, request(shop, f"POST /api/v1/workspaces/{shop.workspace_id}/contacts", JSON, *headers, body=body)
    )

    assert len(answers) == 1
    assert is_sound_refusal(answers[0])
    assert jobs(broad, shop) == before


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_a_read_whose_end_is_in_doubt_is_answered_once_and_nothing_behind_it_is_read(
    broad: Stack, shop: Shop, what: str
) -> None:
    headers, body = AMBIGUOUS[what]

    answers = send(broad, request(shop, "GET /api/v1/auth/me", *headers, body=body))

    assert len(answers) == 1
    assert answers[0].status == 200 or is_sound_refusal(answers[0])


def test_a_chunked_body_is_read_to_its_end_and_no_further(broad: Stack, shop: Shop) -> None:
    path = f"POST /api/v1/workspaces/{shop.workspace_id}/contacts"

    first, second = send(
        broad,
        request(shop, path, JSON, "Transfer-Encoding: chunked", body=CHUNKED)
        + request(shop, "GET /api/v1/auth/me", "Connection: close"),
    )

    assert (first.status, second.status) == (202, 200)
    assert first.header("X-Request-Id") != second.header("X-Request-Id")


def test_the_body_of_a_read_is_not_taken_for_a_request(broad: Stack, shop: Shop) -> None:
    answers = send(broad, request(shop, "GET /api/v1/auth/me", f"Content-Length: {len(INNER)}", body=INNER))

    assert [answer.status for answer in answers] == [200]


def test_a_body_that_is_cut_short_is_no_write(broad: Stack, shop: Shop) -> None:
    before = jobs(broad, shop)
    path = f"POST /api/v1/workspaces/{shop.workspace_id}/contacts"

    answers = send(broad, request(shop, path, JSON, f"Content-Length: {len(BODY) + 5}", body=BODY))

    assert len(answers) <= 1
    assert all(is_sound_refusal(answer) for answer in answers)
    assert jobs(broad, shop) == before


LINES = {
    "no HTTP at all": b"injected\r\n\r\n",
    "nothing but line ends": b"\r\n\r\n\r\n\r\n",
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03injected\r\n\r\n",
    "HTTP/2 without a question": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /injected\r\n\r\n",
    "HTTP/3.0": b"GET /injected HTTP/3.0\r\n\r\n",
    "a version that is none": b"GET /injected HTTP/1.x\r\n\r\n",
    "a method in small letters": b"get /injected HTTP/1.1\r\n\r\n",
    "a method with a NUL": b"G\x00T /injected HTTP/1.1\r\n\r\n",
    "a space in the path": b"GET /in jected HTTP/1.1\r\n\r\n",
    "a tab instead of a space": b"GET\t/injected\tHTTP/1.1\r\n\r\n",
    "a NUL in the path": b"GET /injected\x00 HTTP/1.1\r\n\r\n",
    "bytes in the path": b"GET /injected\xff\xfe HTTP/1.1\r\n\r\n",
    "a path that is none": b"GET injected HTTP/1.1\r\n\r\n",
    "a bare line end": b"GET /injected HTTP/1.1\nHost: x\n\n",
    "a line of 100,000 characters": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "a header of 100,000 characters": b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "10,000 headers": b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 10_000 + b"\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: a\r\nHost: injected\r\n\r\n",
    "two content types": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Type: injected\r\n\r\n",
    "an expectation that nobody knows": b"GET / HTTP/1.1\r\nHost: a\r\nExpect: injected\r\n\r\n",
    "a token behind a control character": b"GET / HTTP/1.1\r\nAuthorization: Bearer bhp_injected\x01\r\n\r\n",
    "headers that do not end": b"GET / HTTP/1.1\r\nX: injected",
}


@pytest.mark.parametrize("what", LINES)
def test_what_is_no_request_is_refused_with_a_problem_that_repeats_nothing(broad: Stack, shop: Shop, what: str) -> None:
    answers = send(broad, LINES[what])

    assert len(answers) <= 1
    assert all(is_sound_refusal(answer) for answer in answers)
    assert answers or what in ("nothing but line ends", "headers that do not end")


def test_what_is_no_request_is_logged_without_anything_of_it(broad: Stack, shop: Shop) -> None:
    [answer] = send(broad, LINES["a token behind a control character"])

    logged = [line for line in lines(broad, "web") if line.get("request_id") == answer.header("X-Request-Id")]

    assert [(line["event"], line["reason"]) for line in logged] == [("request.unreadable", "InvalidHeader")]
    assert "injected" not in broad.processes.log("web").read_text()


@pytest.mark.parametrize(
    "header",
    ["SCRIPT_NAME: /api", "SCRIPT_NAME: /x", "PATH_INFO: /api/v1/x", "X_REQUEST_ID: injected", "REMOTE_USER: injected"],
)
def test_a_header_that_is_named_like_a_variable_is_not_taken_for_one(broad: Stack, shop: Shop, header: str) -> None:
    [answer] = send(broad, request(shop, "GET /api/v1/auth/me", header, "Connection: close"))

    assert answer.status == 200
    assert b"injected" not in answer.head.encode() + answer.body


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET http://evil.example/api/v1/auth/me", 200),
        ("GET //evil.example/api/v1/auth/me", 404),
        ("GET /api/v1/auth/me#injected", 200),
        ("GET /api/v1//auth/me", 404),
        ("GET //api/v1/auth/me", 404),
        ("GET ///api/v1/auth/me", 404),
        ("GET /%2fapi/v1/auth/me", 404),
        ("GET http://evil.example//api/v1/auth/me", 404),
        ("GET /api/v1/auth/./me", 404),
        ("GET /api/v1/x/../auth/me", 404),
        ("GET /api/v1/auth/me%00", 404),
        ("GET /api/v1/auth/me;injected", 404),
        ("GET /api/v1/%61uth/me", 200),
        ("OPTIONS *", 404),
        ("CONNECT evil.example:443", 404),
        ("TRACE /api/v1/auth/me", 405),
        ("FOO /api/v1/auth/me", 405),
    ],
)
def test_a_target_is_taken_as_it_is(broad: Stack, shop: Shop, line: str, status: int) -> None:
    [answer] = send(broad, request(shop, line, "Connection: close"))

    assert answer.status == status
    assert b"evil.example" not in answer.head.encode() + answer.body
    assert status == 200 or is_sound_refusal(answer)


@pytest.mark.parametrize(
    "name", ["a%0d%0aSet-Cookie:%20injected=1", "a%0aSet-Cookie:%20injected=1", "%E5%98%8D%E5%98%8ASet-Cookie:injected"]
)
def test_no_tag_gets_into_the_headers_of_an_answer(broad: Stack, shop: Shop, name: str) -> None:
    contact = shop.caller().apply("POST", "contacts", {"external_id": "raw"}).data["id"]
    path = f"/api/v1/workspaces/{shop.workspace_id}/contacts/{contact}/tags/{name}"

    [answer] = send(broad, request(shop, f"DELETE {path}", "Content-Length: 0", "Connection: close"))

    assert answer.status in (202, 404)
    assert "injected" not in answer.head


def test_json_of_100_000_levels_is_refused_at_once(broad: Stack, shop: Shop) -> None:
    path = f"POST /api/v1/workspaces/{shop.workspace_id}/contacts"
    bodies = [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 50_000, b"[" * 50_000 + b'"\\ud800"' + b"]" * 50_000]
    began = time.monotonic()

    for body in bodies:
        [answer] = send(
            broad, request(shop, path, JSON, f"Content-Length: {len(body)}", "Connection: close", body=body)
        )
        assert is_sound_refusal(answer)
        assert answer.status == 400

    assert time.monotonic() - began < 10


def test_two_authorizations_are_none(broad: Stack, shop: Shop) -> None:
    again = f"Authorization: Bearer {shop.token}"

    [answer] = send(broad, request(shop, "GET /api/v1/auth/me", again, "Connection: close"))

    assert is_sound_refusal(answer)
    assert answer.status == 401
