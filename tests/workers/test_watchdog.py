"""A worker that can no longer hear bells ends, so that its supervisor starts another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq import Worker
from dramatiq.brokers.stub import StubBroker

from app.lib import vitals
from tests.cast import until
from workers.middleware import watchdog
from workers.middleware.watchdog import Watchdog


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """With what facts the process would have ended."""
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(vitals, "end", lambda **facts: said.append(facts))
    monkeypatch.setattr(watchdog, "LOOKS_EVERY_SECONDS", 0.02)
    return said


@pytest.fixture
def worker(ended: list[dict[str, Any]]) -> Iterator[Worker]:
    broker = StubBroker(middleware=[Watchdog()])
    dramatiq.actor(lambda: None, actor_name="writes", queue_name="writes", broker=broker)
    worker = Worker(broker, worker_threads=1, worker_timeout=20)
    worker.start()
    yield worker
    worker.stop()


def test_the_process_of_a_consumer_that_is_gone_ends(worker: Worker, ended: list[dict[str, Any]]) -> None:
    gone = worker.consumers["writes"]
    gone.stop()

    assert until(lambda: ended)[0] == {"threads": [gone.name]}


def test_a_worker_that_is_asked_to_end_may(worker: Worker, ended: list[dict[str, Any]]) -> None:
    worker.stop()

    assert ended == []
