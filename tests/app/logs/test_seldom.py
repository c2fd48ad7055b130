"""What a Redis that is away makes processes say."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from app import logs
from app.lib.seldom import Seldom


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What a process writes whose log has just been configured."""
    monkeypatch.setattr(logs, "_of_redis", Seldom(60.0))
    root, before = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers, root.level
    stream = io.StringIO()
    logs.configure("writes", stream=stream)
    yield stream
    structlog.configure(**before)
    root.handlers, root.level = handlers, level


def said(lines: io.StringIO) -> list[tuple[str, str]]:
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [(line["event"], line["level"]) for line in found]


def test_a_redis_that_is_away_is_told_once_a_minute(lines: io.StringIO) -> None:
    consumers = [logging.getLogger(f"dramatiq.worker.ConsumerThread({queue})") for queue in ("writes", "fan-outs")]

    for _ in range(70):
        for consumer in consumers:
            consumer.critical("Consumer encountered a connection error: %s", "Connection refused")
        structlog.get_logger().warning("bells.lost", bells=1)

    assert said(lines) == [("Consumer encountered a connection error: Connection refused", "warning")]


def test_other_lines_are_not_held_back(lines: io.StringIO) -> None:
    for _ in range(2):
        structlog.get_logger().warning("bells.lost", bells=1)
        structlog.get_logger().warning("job.broke")
        logging.getLogger("dramatiq.worker").critical("Something else")

    others = [("job.broke", "warning"), ("Something else", "critical")]
    assert said(lines) == [("bells.lost", "warning"), *others, *others]
