"""Partitions under load: the others take over, and what was cut off works again by itself; nothing is lost."""

from __future__ import annotations

import time

import pytest

from tests.journeys.audit import Figures, audit
from tests.journeys.faults import let_pass, slow
from tests.journeys.load import Load
from tests.journeys.waiting import wait_until
from tests.machines.hosts import Host, Hosts
from tests.machines.namespaces import cut
from tests.machines.watching import Client, at_work_again, longest_write, repeated, sessions, taken_over, unrecorded
from tests.stack.receiver import Receiver

# Longer than a lease, and than TCP waits for a server that has vanished.
CUT_SECONDS = 30
# Half a minute would do on an idle machine.
PATIENCE_SECONDS = 60
# No request takes longer, on a busy machine.
ANSWERED_SECONDS = 10


@pytest.fixture
def load(hosts: Hosts, receiver: Receiver) -> Load:
    receiver.behaviour = slow
    return Load(hosts.open_shops(receiver), pause_seconds=0.1)


def client_of(host: Host, load: Load) -> Client:
    return Client(host, next(shop for shop in load.shops if shop.base_url == host.base_url))


def check(hosts: Hosts, receiver: Receiver, load: Load, pids: object) -> Figures:
    """Checks that every write arrived, twice only if its first result was not recorded, and that no process ended."""
    figures = audit(hosts.stack, receiver, load)
    assert repeated(receiver) <= unrecorded(hosts)
    assert set(load.refused) <= {"Service unavailable"}
    assert [host.pids() for host in hosts.all] == pids
    return figures


def test_others_take_over_from_a_host_that_is_cut_off_and_it_comes_back_by_itself(
    hosts: Hosts, receiver: Receiver, load: Load
) -> None:
    host = next(host for host in hosts.all if host is not hosts.leader())
    client, pids = client_of(host, load), [host.pids() for host in hosts.all]
    with load:
        load.go_on(150)
        began = time.monotonic()
        with cut(host.machine, hosts.data), client.reading():
            taken = taken_over(hosts, load, PATIENCE_SECONDS)
            wait_until(lambda: sessions(hosts, host) == 0, PATIENCE_SECONDS, "its sessions end in PostgreSQL")
            gone = time.monotonic() - began
            let_pass(max(0.0, began + CUT_SECONDS - time.monotonic()))
        back = at_work_again(hosts, host, PATIENCE_SECONDS)
        load.go_on(150)

    figures = check(hosts, receiver, load, pids)

    elsewhere = longest_write(load, began, elsewhere=host)
    print(f"\ncut off: {host.name}, for {CUT_SECONDS} s. {figures}")
    print(f"done by others after {taken:.1f} s; its sessions ended after {gone:.1f} s")
    print(f"at work again {back:.1f} s after it was healed")
    print(f"its clients: {client}; the longest write elsewhere {elsewhere:.1f} s")
    assert client.answers["ready: 503"] > 0
    assert client.answers["contacts: 503"] > 0
    assert client.longest_seconds < ANSWERED_SECONDS
    assert elsewhere < ANSWERED_SECONDS


def test_another_scheduler_leads_when_the_leading_one_is_cut_off(hosts: Hosts, receiver: Receiver, load: Load) -> None:
    wait_until(lambda: hosts.leader() is not None, 30, "a scheduler leads")
    host, epoch = hosts.leader(), hosts.epoch()
    pids = [host.pids() for host in hosts.all]
    noticed = len(host.logged("scheduler", "scheduler.waits_for_database"))
    with load:
        load.go_on(150)
        began = time.monotonic()
        with cut(host.machine, hosts.data):
            led = wait_until(lambda: hosts.leader() not in (None, host), PATIENCE_SECONDS, "another leads")
            known = led + wait_until(
                lambda: len(host.logged("scheduler", "scheduler.waits_for_database")) > noticed,
                PATIENCE_SECONDS,
                "the former leader knows that it does not lead",
            )
            epochs = hosts.epoch() - epoch
        back = at_work_again(hosts, host, PATIENCE_SECONDS)
        load.go_on(150)

    figures = check(hosts, receiver, load, pids)

    elsewhere = longest_write(load, began, elsewhere=host)
    print(f"\nleader cut off: {host.name}. {figures}")
    print(f"another led after {led:.1f} s; the former one knew after {known:.1f} s; at work again after {back:.1f} s")
    print(f"the longest write elsewhere {elsewhere:.1f} s")
    assert epochs == 1
    assert elsewhere < ANSWERED_SECONDS


def test_when_nobody_reaches_the_data_for_a_while_all_goes_on_afterwards(
    hosts: Hosts, receiver: Receiver, load: Load
) -> None:
    pids = [host.pids() for host in hosts.all]
    clients = [client_of(host, load) for host in hosts.all]
    with load:
        load.go_on(150)
        with (
            cut(hosts.data, *(host.machine for host in hosts.all)),
            clients[0].reading(),
            clients[1].reading(),
            clients[2].reading(),
        ):
            let_pass(CUT_SECONDS)
        healed, accepted = time.monotonic(), len(load.accepted)
        first = wait_until(lambda: len(load.accepted) > accepted, PATIENCE_SECONDS, "a write is accepted")
        for host in hosts.all:
            at_work_again(hosts, host, PATIENCE_SECONDS)
        back = time.monotonic() - healed
        load.go_on(150)

    figures = check(hosts, receiver, load, pids)

    longest = max(client.longest_seconds for client in clients)
    print(f"\ndata cut off for {CUT_SECONDS} s. {figures}")
    print(f"the first write {first:.1f} s after it was healed; all hosts at work after {back:.1f} s")
    print(f"clients: {clients[0]}; {clients[1]}; {clients[2]}")
    assert all(client.answers["contacts: 503"] > 0 for client in clients)
    assert longest < ANSWERED_SECONDS
