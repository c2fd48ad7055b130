from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.domain.deliveries import attempts, reproductions
from app.outbound import wire_format
from tests.conftest import Servers

ADDRESS = "https://shop.example/hooks?key=$(touch pwned)'`\"&x=[1-3]"
BODY = b"""{"id":"evt_1","data":{"name":"O'Brien $(touch pwned) `x` \\"%s\\" \\\\ \xd9\x85"}}"""
# In place of the real ones, so that the test needs neither and sends nothing.
STUBS = """
date() { echo 1700000000; }
openssl() { printf 'SIGNED[' >&2; cat >&2; printf ']\\n' >&2; echo 'stdin= abc123'; }
curl() { for each in "$@"; do printf '%s\\n' "$each"; done; }
"""


@pytest.fixture(autouse=True)
def configured(servers: Servers) -> None:
    """Which addresses are dialled is a setting."""


def run(command: str, directory: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", STUBS + command], capture_output=True, text=True, check=True, cwd=directory, timeout=30
    )


def test_the_head_is_what_the_sender_sends() -> None:
    head = reproductions.head("dlv_1", "https://shop.example:8443/hooks?a=b", BODY)

    target = wire_format.read_target("https://shop.example:8443/hooks?a=b", ())
    assert isinstance(target, wire_format.Target)
    sent = wire_format.post_bytes(target, attempts.headers_of("dlv_1", reproductions.SIGNATURE), BODY)
    assert f"{head}\n\n".replace("\n", "\r\n").encode() + BODY == sent


def test_every_header_is_explained() -> None:
    head = reproductions.head("dlv_1", "https://shop.example/", b"{}")

    assert isinstance(head, reproductions.Head)
    assert {name for name, _ in head.headers} == reproductions.MEANINGS.keys()


def test_an_address_that_is_refused_says_why() -> None:
    assert reproductions.head("dlv_1", "https://10.0.0.1/", b"{}") == "10.0.0.1 is not a public address."


def test_the_command_sends_the_body_and_all_headers_and_runs_nothing_else(tmp_path: Path) -> None:
    done = run(reproductions.command("dlv_1", ADDRESS, BODY), str(tmp_path))

    lines = done.stdout.splitlines()
    assert lines[:5] == ["-i", "--globoff", "-X", "POST", ADDRESS]
    assert lines[-2:] == ["--data-raw", BODY.decode()]
    assert {"Content-Type: application/json", "User-Agent: Bellhop-Webhooks/1", "X-Service-Delivery: dlv_1"} <= {*lines}
    assert "X-Service-Signature: t=1700000000,v1=abc123" in lines
    assert f"SIGNED[1700000000.{BODY.decode()}]" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_long_body_is_read_from_a_file(tmp_path: Path) -> None:
    body = b'{"x":"%s"}' % (b"y" * reproductions.LONGEST_INLINE)
    (tmp_path / "body.json").write_bytes(body)

    done = run(reproductions.command("dlv_1", ADDRESS, body), str(tmp_path))

    assert done.stdout.splitlines()[-2:] == ["--data-binary", "@body.json"]
    assert f"SIGNED[1700000000.{body.decode()}]" in done.stderr
