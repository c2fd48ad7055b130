"""The faults that stories inject."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer
from tests.stack.stack import Stack


def kill(stack: Stack, *kinds: str) -> None:
    """Kills every process of these types with its children; returns once all are running again."""
    before = {kind: stack.processes.pids(kind) for kind in kinds}
    for name in names(stack, *kinds):
        stack.processes.kill(name)
    for kind, pids in before.items():
        wait_until(
            lambda kind=kind, pids=pids: (
                len(stack.processes.pids(kind)) == len(pids) and not set(stack.processes.pids(kind)) & set(pids)
            ),
            10,
            f"{kind} is started again",
        )


def names(stack: Stack, *kinds: str) -> list[str]:
    """The processes that do the work of these types."""
    return list(dict.fromkeys(name for kind in kinds for name in stack.processes.names_of(kind)))


@contextmanager
def redis_away(stack: Stack) -> Iterator[None]:
    """Redis is gone within the block, and empty afterwards; so is RabbitMQ, if there is one, but it keeps its bells."""
    for server in stack.bell_servers:
        server.stop()
    try:
        yield
    finally:
        for server in stack.bell_servers:
            server.start()


@contextmanager
def redis_hanging(stack: Stack) -> Iterator[None]:
    for server in stack.bell_servers:
        server.freeze()
    try:
        yield
    finally:
        for server in stack.bell_servers:
            server.thaw()


@contextmanager
def nobody_at(stack: Stack, kind: str) -> Iterator[None]:
    """The processes of a type are stopped within the block, and started together at its end."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(stack.processes.stop, names(stack, kind)))
    try:
        yield
    finally:
        for name in names(stack, kind):
            stack.processes.start(name)


def empty_redis(stack: Stack) -> None:
    for server in stack.bell_servers:
        server.empty()


def restart_postgres(stack: Stack) -> None:
    stack.postgres.restart()


def let_pass(seconds: float) -> None:
    ends = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > ends, seconds + 5)


def slow(_path: str, _body: bytes) -> Answer:
    """Slow enough that some attempts are always in flight."""
    return Answer(delay_seconds=0.2)


class FailsFirst:
    """A receiver that fails the first `times` attempts of every event."""

    def __init__(self, times: int, delay_seconds: float = 0.0) -> None:
        self._times = times
        self._delay_seconds = delay_seconds
        self._seen: Counter[str] = Counter()

    def __call__(self, _path: str, body: bytes) -> Answer:
        event = json.loads(body)["id"]
        self._seen[event] += 1
        return Answer(500 if self._seen[event] <= self._times else 200, delay_seconds=self._delay_seconds)
