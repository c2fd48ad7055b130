"""The thread that wakes what waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dramatiq import Worker
from dramatiq.brokers.stub import StubBroker
from peewee import OperationalError

from app import mailbox
from app.mailbox.waking import BATCH
from tests.cast import until
from workers.middleware import waking
from workers.middleware.waking import Waking

Start = Callable[[Callable[[], int]], Waking]


broker: Any = StubBroker(middleware=[])
worker = Worker(broker)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts the thread as a worker's start does; the worker stops with the test."""
    started: list[Waking] = []

    def start(wake: Callable[[], int]) -> Waking:
        monkeypatch.setattr(mailbox, "wake_all", wake)
        middleware = Waking()
        middleware.after_worker_boot(broker, worker)
        started.append(middleware)
        return middleware

    yield start
    for each in started:
        each.before_worker_shutdown(broker, worker)


@pytest.mark.parametrize("error", [OperationalError("away"), ValueError("broken")])
def test_an_error_does_not_end_it(start: Start, error: Exception) -> None:
    calls: list[int] = []

    def wake() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise error
        return 0

    start(wake)

    until(lambda: len(calls) > 2)


def test_after_a_full_batch_it_wakes_more_at_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "EVERY_SECONDS", 3600)
    woken = [BATCH, BATCH, 1]
    calls: list[int] = []

    def wake() -> int:
        calls.append(woken[len(calls)])
        return calls[-1]

    start(wake)

    until(lambda: calls == woken)


def test_it_ends_with_the_worker(start: Start) -> None:
    called = threading.Event()

    def wake() -> int:
        called.set()
        return 0

    started = start(wake)
    until(called.is_set)

    started.before_worker_shutdown(broker, worker)
    until(lambda: "waking" not in [thread.name for thread in threading.enumerate()])
