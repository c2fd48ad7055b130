"""Which process types a worker stands for."""

from __future__ import annotations

import threading

from dramatiq.brokers.stub import StubBroker

from app import process_registry
from workers.middleware.beside import Beside
from workers.middleware.registration import process_types

QUEUES = {
    "writes": {"writes", "fan-outs"},
    "automations": {"runs", "run-requests", "broadcasts"},
    "deliveries": {"deliveries"},
    "slow-deliveries": {"slow-deliveries"},
    "retries": {"sweeps", "replays", "channel-requests"},
    "messages": {"messages", "read-receipts", "arrivals", "fetches"},
}


def broker(*queues: str) -> StubBroker:
    made = StubBroker(middleware=[])
    for queue in queues:
        made.declare_queue(queue)
    return made


def test_a_queue_stands_for_the_type_that_serves_it() -> None:
    assert {kind: process_types(broker(*queues)) for kind, queues in QUEUES.items()} == {
        kind: {kind} for kind in QUEUES
    }


def test_a_worker_of_all_queues_stands_for_all_types_that_run_in_it() -> None:
    everything = broker(*(queue for queues in QUEUES.values() for queue in queues))
    for kind in ("scheduler", "realtime"):
        everything.add_middleware(Beside(kind, threading.Event.wait))

    assert process_types(everything) == set(process_registry.TYPES) - {"web"}
