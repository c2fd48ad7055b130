"""Processes say that they are there, and what they are."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from app import bells, process_registry
from app.lib import versions

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture(autouse=True)
def without_facts() -> Iterator[None]:
    process_registry._facts.clear()
    yield
    process_registry._facts.clear()


def test_a_process_says_what_it_is() -> None:
    process_registry.tell("leads", True)
    process_registry._say("writes", {"version": "v1", "started_at": "2026-11-23T06:00:00+00:00"})

    [process] = process_registry.processes()

    assert (process.type, process.host, process.pid) == ("writes", socket.gethostname(), os.getpid())
    assert process.version == "v1"
    assert process.started_at == datetime(2026, 11, 23, 6, tzinfo=UTC)
    assert process.rss_bytes is not None
    assert process.rss_bytes > 1_000_000
    assert process.facts == {"leads": True}


def test_a_process_of_an_older_version_is_there_all_the_same() -> None:
    bells.flags().set("process:deliveries:host:7", b"1")
    bells.flags().set("process:web:host:8", b"1")
    bells.flags().set("process:unheard-of:host:9", b'{"version": "v9"}')

    found = process_registry.processes()

    assert [(each.type, each.pid, each.version) for each in found] == [
        ("web", 8, None),
        ("deliveries", 7, None),
        ("unheard-of", 9, "v9"),
    ]


def test_nobody_is_there_at_first() -> None:
    assert process_registry.processes() == []


def test_the_version_is_that_of_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    assert re.fullmatch(rf"{re.escape(versions.NUMBER)}\+g[0-9a-f]{{7,}}(-dirty)?", versions.running.__wrapped__())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert versions.running.__wrapped__() == versions.NUMBER
