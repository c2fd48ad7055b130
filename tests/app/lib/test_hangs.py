"""A PostgreSQL that hangs: the tests' own server, frozen. One that is only slow is left alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2
import pytest

from app import database
from app.database import DatabaseAway, rows, transaction
from app.lib import hangs
from tests.cast import Api, accept, one, until
from tests.conftest import Servers

Watching = Callable[[Callable[..., Any]], None]


@pytest.fixture
def watching(api: Api, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watching]:
    """Watches, with probes that connect like that; suspects the server soon."""
    monkeypatch.setattr(hangs, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(hangs, "LOOKS_EVERY_SECONDS", 0.02)
    stopping, threads = threading.Event(), []

    def watch(connect: Callable[..., Any]) -> None:
        threads.append(threading.Thread(target=hangs.watch.run, args=(connect, stopping)))
        threads[0].start()

    yield watch
    stopping.set()
    for thread in threads:
        thread.join()


@contextmanager
def frozen(servers: Servers) -> Iterator[None]:
    """PostgreSQL hangs within the block, but not for longer than a test may take."""
    servers.postgres.freeze()
    rescue = threading.Timer(30, servers.postgres.thaw)
    rescue.start()
    try:
        yield
    finally:
        rescue.cancel()
        servers.postgres.thaw()


def test_what_waits_for_a_server_that_hangs_fails_and_what_comes_does_at_once(
    servers: Servers, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hangs, "PROBE_SECONDS", 0.3)
    watching(database.database.connect_beside)
    assert one("SELECT 1") == 1

    with frozen(servers):
        for _ in range(3):
            with pytest.raises(DatabaseAway):
                rows("SELECT 1")
        assert hangs.watch.is_hanging

    until(lambda: not hangs.watch.is_hanging)
    assert one("SELECT 1") == 1


def test_a_transaction_whose_statement_is_refused_is_over(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_before_and_while_it_hangs() -> None:
        with transaction():
            accept(api.workspace_id, "contacts.upsert", {"external_id": "one"})
            monkeypatch.setattr(hangs.watch, "is_hanging", True)
            accept(api.workspace_id, "contacts.upsert", {"external_id": "two"})

    with pytest.raises(DatabaseAway):
        write_before_and_while_it_hangs()
    monkeypatch.setattr(hangs.watch, "is_hanging", False)
    accept(api.workspace_id, "contacts.upsert", {"external_id": "three"})

    assert not database.database.in_transaction()
    assert one("SELECT string_agg(payload->>'external_id', ',') FROM jobs") == "three"
    assert not hangs.watch.waiting


def test_a_slow_statement_of_a_server_that_answers_is_left_alone(watching: Watching) -> None:
    probes = []

    def connect(**options: Any) -> Any:
        probes.append(options)
        return database.database.connect_beside(**options)

    watching(connect)

    assert one("SELECT 1 FROM pg_sleep(1)") == 1
    assert {each["hostaddr"] for each in probes} == {"127.0.0.1"}
    assert not hangs.watch.is_hanging


def test_a_server_that_refuses_the_probe_does_not_hang(watching: Watching) -> None:
    probes = []

    def connect(**options: Any) -> Any:
        probes.append(options)
        raise psycopg2.OperationalError("FATAL: sorry, too many clients already")

    watching(connect)

    assert one("SELECT 1 FROM pg_sleep(1)") == 1
    assert probes
    assert not hangs.watch.is_hanging


def test_a_name_whose_first_address_answers_nobody_is_no_hang_for_long(
    servers: Servers, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has never been connected does not know yet which of the addresses to probe."""
    monkeypatch.setattr(hangs, "PROBE_SECONDS", 0.1)
    monkeypatch.setattr(hangs.watch, "address", {})
    monkeypatch.setattr(hangs.watch, "waiting", {"attempt": 0.0})
    connected = threading.Event()

    def connect(**options: Any) -> Any:
        made = database.database.connect_beside(**options, host="silent,local", hostaddr="127.0.0.2,127.0.0.1")
        if "async_" not in options:
            hangs.watch.waiting.clear()
            connected.set()
        return made

    with socket.create_server(("127.0.0.2", servers.postgres.port)):
        watching(connect)
        assert connected.wait(30)

    until(lambda: not hangs.watch.is_hanging)
    assert one("SELECT 1") == 1
