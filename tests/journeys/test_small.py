"""The two processes of Procfile.small do everything, in 256 MiB, and lose nothing when one is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from app.metrics import MOST_PORTS
from tests.journeys.audit import Figures, audit, rows
from tests.journeys.conftest import SETTINGS, serve
from tests.journeys.faults import kill
from tests.journeys.load import Load
from tests.journeys.runs import flaws, make_visitors, publish_walk, start, unfinished_runs
from tests.journeys.shops import open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.listening import Ear
from tests.stack.ports import free_range
from tests.stack.processes import ROOT, SMALL
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

MOST_MIB = 256
RUNS = 4
WINDOW = 32  # requests under way to one endpoint


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    settings = SETTINGS | {"METRICS_PORT": str(free_range(MOST_PORTS))}
    yield from serve({"web": 1, "worker": 1}, settings, procfile=SMALL)


@pytest.fixture
def receiver(stack: Stack) -> Iterator[Receiver]:
    with Receiver(stack.certificates.ca_file.parent) as receiver:
        yield receiver


def test_runs_take_their_steps_and_listeners_hear_of_it(stack: Stack, receiver: Receiver) -> None:
    shop = open_shop(stack, receiver)
    automation, contacts = publish_walk(shop, receiver, 1), make_visitors(stack, shop, RUNS)
    ear = Ear(stack.realtime_port, headers={"Authorization": f"Bearer {shop.token}"}).open().until_placed()

    started = [start(shop.caller(), automation, contact, number) for number, contact in enumerate(contacts)]

    wait_until(lambda: unfinished_runs(stack, shop) == 0, 60, "every run has ended")
    assert list(flaws(stack, shop, receiver, started)) == []
    sent = {id for (id,) in rows(stack, "SELECT id FROM messages WHERE workspace_id = %s", shop.workspace_id)}
    assert len(sent) == RUNS
    wait_until(lambda: sent <= {each.data["id"] for each in ear.listen().heard}, 20, "every message is heard")


def test_a_killed_worker_loses_nothing(stack: Stack, receiver: Receiver, report: Callable[[Figures], None]) -> None:
    load = Load(open_shops(stack, receiver, 2))

    with load:
        load.go_on(100)
        kill(stack, "worker")
        load.go_on(100)

    figures = audit(stack, receiver, load)
    report(figures)
    assert figures.duplicates <= len(load.shops) * WINDOW


def test_it_is_well_and_takes_no_more_memory_than_promised(stack: Stack, report: Callable[[object], None]) -> None:
    stack.processes.wait_ready()

    assert all(line.startswith("ok ") for line in said(stack, "check"))
    assert said(stack, "health", "retries")[0].startswith("ok     retries: answers on port ")
    report(f"{(found := memory_mib(stack)):.0f} MiB")
    assert found <= MOST_MIB


def said(stack: Stack, *command: str) -> list[str]:
    """What a command of the app prints, which ends well."""
    done = subprocess.run(
        [sys.executable, "-m", "app", *command], cwd=ROOT, env=stack.environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def memory_mib(stack: Stack) -> float:
    """The memory of the processes and their children. Each page counts once, divided by how many share it."""
    leaders = [psutil.Process(stack.processes.pid(name)) for name in stack.processes.names]
    each = [process for leader in leaders for process in (leader, *leader.children(recursive=True))]
    return sum(process.memory_full_info().pss for process in each) / 1024**2
