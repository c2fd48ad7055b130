"""Processes of an earlier release beside those of this one, on this schema, under load: on the way here and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.journeys.audit import audit
from tests.journeys.conftest import SETTINGS
from tests.journeys.load import Load
from tests.journeys.runs import Started, flaws, make_visitors, publish_walk, start, unfinished_runs
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.ports import free_port
from tests.stack.processes import ROOT, Processes
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack
from tests.upgrade.releases import check_out, earlier

PROCESSES = {
    **{"web": 1, "realtime": 1, "writes": 2, "automations": 1, "deliveries": 1, "slow-deliveries": 1},
    **{"retries": 1, "messages": 1, "scheduler": 1},
}
# They are restarted last.
SERVERS = ("web", "realtime")
RUNS = 8  # at each stage


class Walkers:
    """Runs of an automation of nearly all kinds of steps, some of which are under way at any time."""

    def __init__(self, stack: Stack, shop: Shop, receiver: Receiver) -> None:
        self.shop, self._automation = shop, publish_walk(shop, receiver, seconds=3)
        self._contacts, self._numbers = make_visitors(stack, shop, 4), count(1)
        self.started: list[Started] = []

    def set_out(self, base_url: str) -> None:
        """Starts some runs through the `web` at that address."""
        caller = replace(self.shop, base_url=base_url).caller()
        for contact, number in zip(self._contacts * (RUNS // 4), self._numbers, strict=False):
            self.started.append(start(caller, self._automation, contact, number))


def change_over(leaving: Processes, coming: Processes, shops: Sequence[Shop], walkers: Walkers) -> list[Load]:
    """Replaces processes as docs/running.md says; returns the load meanwhile, on the `web` that leaves and the new."""
    former, latter = [each.environment["BASE_URL"] for each in (leaving, coming)]
    first, second = Load([replace(shops[0], base_url=former)]), Load([replace(shops[1], base_url=latter)])
    with ExitStack() as under_load:
        with first:
            walkers.set_out(former)
            coming.upgrade()
            first.go_on()
            coming.start()
            coming.wait_ready()
            under_load.enter_context(second)
            for url in (former, latter):
                walkers.set_out(url)
                first.go_on()
                second.go_on()
            for name in [name for name in leaving.names if not name.startswith(SERVERS)]:
                leaving.stop(name)
            walkers.set_out(former)
            first.go_on()
        leaving.stop()
        walkers.set_out(latter)
        second.go_on()
    return [first, second]


def complaints(processes: Processes) -> list[str]:
    """The errors in their logs."""
    found = [line for name in processes.names for line in processes.log(name).read_text().splitlines()]
    return [line for line in found if is_error(line)]


def is_error(line: str) -> bool:
    return "Traceback" in line or (line.startswith("{") and json.loads(line)["level"] in ("error", "critical"))


def beside(stack: Stack, root: Path, name: str) -> Processes:
    """Processes of the code in that folder, with ports of their own."""
    port, realtime_port = free_port(), free_port()
    own = {"PORT": str(port), "REALTIME_PORT": str(realtime_port), "BASE_URL": f"http://127.0.0.1:{port}"}
    return Processes(PROCESSES, stack.environment | own, stack.directory / name, procfile=root / "Procfile")


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The service as it was in an earlier release."""
    with TemporaryDirectory(prefix="bellhop-upgrade-", ignore_cleanup_errors=True) as directory:
        old = check_out(earlier(), Path(directory, "code"))
        settings = SETTINGS | {"RATE_LIMIT": "0"}
        with Stack(Path(directory, "data"), PROCESSES, settings, procfile=old / "Procfile") as stack:
            yield stack


@pytest.fixture
def receiver(stack: Stack) -> Iterator[Receiver]:
    with Receiver(stack.certificates.ca_file.parent) as receiver:
        yield receiver


def test_nothing_is_lost_on_the_way_to_this_release_and_back(stack: Stack, receiver: Receiver) -> None:
    shops = [open_shop(stack, receiver) for _ in range(4)]
    walkers = Walkers(stack, open_shop(stack, receiver), receiver)
    new, old = beside(stack, ROOT, "new"), beside(stack, stack.processes.root, "old")
    try:
        loads = change_over(stack.processes, new, shops[:2], walkers)
        loads += change_over(new, old, shops[2:], walkers)
        wait_until(lambda: unfinished_runs(stack, walkers.shop) == 0, 120, "every run has ended")
        last = old.environment["BASE_URL"]
        walkers.shop = replace(walkers.shop, base_url=last)
        print(
            f"\nfrom {earlier()}: {len(walkers.started)} runs",
            *[audit(stack, receiver, each) for each in loads],
            sep="\n",
        )
        assert list(flaws(stack, walkers.shop, receiver, walkers.started)) == []
    finally:
        new.stop()
        old.stop()

    assert complaints(stack.processes) + complaints(new) + complaints(old) == []
