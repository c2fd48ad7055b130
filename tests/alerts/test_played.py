"""What fires in faults of a real service, seen for some seconds and continued for an hour."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from app.lib import ids
from tests.alerts.conftest import Service
from tests.journeys.faults import let_pass, nobody_at
from tests.journeys.shops import NoAnswer

MISSING, OVERDUE = "BellhopProcessMissing", "BellhopMailOverdue"


def test_workers_that_are_stopped_are_missed_and_their_mail_is_overdue(service: Service) -> None:
    with nobody_at(service.stack, "deliveries"):
        assert service.fires() == {MISSING, OVERDUE}


def test_a_backlog_that_grows_is_told(service: Service) -> None:
    with nobody_at(service.stack, "writes"):
        with service.sql() as cursor:
            # Of a workspace of its own, which the others do not wait for.
            cursor.execute(
                "INSERT INTO jobs (id, workspace_id, kind, trace_id, due_at)"
                " SELECT 'job_' || n, 'ws_none', 'contacts.upsert', 't', now() FROM generate_series(1, 12000) AS n"
            )
        assert service.fires(minutes=90) == {MISSING, OVERDUE, "BellhopBacklogGrows"}
        with service.sql() as cursor:
            cursor.execute("DELETE FROM jobs WHERE workspace_id = 'ws_none'")


def test_a_scheduler_that_is_stopped_is_missed(service: Service) -> None:
    with nobody_at(service.stack, "scheduler"):
        assert service.fires() == {MISSING, "BellhopNoLeader"}


def test_a_postgresql_that_is_away_is_told_with_what_follows(service: Service) -> None:
    service.stack.postgres.stop()
    try:
        assert service.fires() == {"BellhopDatabaseAway", "BellhopUnavailable", "BellhopNoLeader"}
    finally:
        service.stack.postgres.start()


def test_a_write_of_an_unknown_kind_is_told(service: Service) -> None:
    job_id = ids.new("job")
    with service.sql() as cursor:
        cursor.execute(
            "INSERT INTO jobs (id, workspace_id, kind, trace_id, due_at)"
            " VALUES (%s, %s, 'contacts.praise', 't', now())",
            (job_id, service.shops[0].workspace_id),
        )
    assert service.fires() == {"BellhopUnknownJobs"}
    with service.sql() as cursor:
        cursor.execute("DELETE FROM jobs WHERE id = %s", (job_id,))


def test_a_pass_that_fails_and_a_request_that_breaks_are_told(service: Service) -> None:
    def ask(ended: threading.Event) -> None:
        caller = service.shops[0].caller()
        while not ended.is_set():
            with suppress(*NoAnswer):
                caller.call("GET", "saved-replies")
            let_pass(0.2)

    with without_table(service, "figure_progress"), without_table(service, "saved_replies"), beside(ask):
        assert service.fires() == {"BellhopPassFails", "BellhopInternalErrors"}


@contextmanager
def beside(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Does these in threads until the end of the block, when the event is set; raises what they raise."""
    ended = threading.Event()
    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(work, ended) for work in works]
        try:
            yield
        finally:
            ended.set()
    for each in running:
        each.result()


@contextmanager
def without_table(service: Service, table: str) -> Iterator[None]:
    with service.sql() as cursor:
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    try:
        yield
    finally:
        with service.sql() as cursor:
            cursor.execute(f"ALTER TABLE {table}_away RENAME TO {table}")
