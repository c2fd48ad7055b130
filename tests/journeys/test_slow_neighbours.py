"""A workspace with a long queue does not delay another's writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.journeys.audit import rows, unfinished
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

QUEUE = 2000
CLIENTS = 4


def test_a_long_queue_does_not_delay_the_single_write_of_another_workspace(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    busy, quiet = open_shop(stack, receiver), open_shop(stack, receiver)
    workers = [name for name in stack.processes.names if name.startswith("writes.")]
    load = Load([busy], clients=CLIENTS, contacts=100, pause_seconds=0, most=QUEUE // CLIENTS)
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(stack.processes.stop, workers))
        with load:
            load.finish()
        stack.processes.start(workers[0])
        wait_until(lambda: _waiting(stack, busy) < QUEUE, 30, "the long queue is worked off")
        taken = _time_writes_beside(stack, busy, quiet)
    finally:
        for name in workers:
            stack.processes.start(name)

    report(f"the slowest of {len(taken)} single writes beside the queue took {max(taken):.2f} s")
    assert max(taken) < 2
    wait_until(lambda: unfinished(stack, [busy, quiet]) == 0, 60, "all is done")


def _waiting(stack: Stack, shop: Shop) -> int:
    query = "SELECT count(*) FROM jobs WHERE workspace_id = %s AND due_at IS NOT NULL"
    return int(rows(stack, query, shop.workspace_id)[0][0])


def _time_writes_beside(stack: Stack, busy: Shop, quiet: Shop) -> list[float]:
    """How many seconds single writes of the quiet shop took, one after the other, all within the queue of the other."""
    caller, taken = quiet.caller(), []
    while True:
        began = time.monotonic()
        caller.apply("POST", "contacts", {"external_id": f"contact-{len(taken)}"})
        seconds = time.monotonic() - began
        if not _waiting(stack, busy):
            assert taken, "The long queue was at its end before a single write was"
            return taken
        taken.append(seconds)
