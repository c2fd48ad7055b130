"""What runs in a thread of the worker."""

from __future__ import annotations

import threading
from typing import Any

from dramatiq import Worker
from dramatiq.brokers.stub import StubBroker

from workers.middleware.beside import Beside, Closing


def test_it_runs_from_the_start_of_the_worker_and_has_ended_when_the_worker_has() -> None:
    happened = []

    def run(stopping: threading.Event) -> None:
        happened.append("began")
        assert stopping.wait(20)
        happened.append("ended")

    broker = StubBroker(middleware=[Beside("scheduler", run)])
    worker = Worker(broker, worker_threads=1)

    worker.start()
    worker.stop()

    assert happened == ["began", "ended"]


class Desk:
    """Two of these end only together."""

    def __init__(self, together: threading.Barrier) -> None:
        self._together = together

    def begin_to_stop(self) -> None:
        self._thread = threading.Thread(target=self._together.wait, args=(20,))
        self._thread.start()

    def stop(self) -> None:
        self._thread.join()


def test_the_desks_of_a_process_end_at_the_same_time() -> None:
    together = threading.Barrier(2)
    dispatchers: list[Any] = [Desk(together), Desk(together)]
    worker = Worker(StubBroker(middleware=[Closing(dispatcher) for dispatcher in dispatchers]), worker_threads=1)
    worker.start()

    worker.stop()

    assert not together.broken
