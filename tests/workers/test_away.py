"""Bells while no worker hears them, and when workers are back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dramatiq
import pytest
import redis
from dramatiq import Worker

from app import bells, database
from app.config import settings
from app.domain import writes
from app.domain.jobs import jobs
from app.domain.people import workspaces
from app.models.jobs import Job
from scheduler.overdue import Overdue
from tests.cast import accept, one, rung_on, until
from workers.middleware.hearing import Hearing
from workers.redis_broker import BlockingBroker

pytestmark = pytest.mark.usefixtures("empty")

WORKSPACES = 100


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bell may be lost as soon as it is not the same millisecond any more."""
    monkeypatch.setattr(bells, "RINGING_SECONDS", 0)


@pytest.fixture
def owners() -> list[str]:
    """Workspaces with a write each."""
    made = sorted(workspaces.create(f"Shop {number}")[0].id for number in range(WORKSPACES))
    for workspace_id in made:
        write(workspace_id)
    return made


def write(workspace_id: str) -> Job:
    return accept(workspace_id, "contacts.upsert", {"external_id": "ada"})


def go_round(make: Callable[[], int]) -> None:
    """A pass of the scheduler, some milliseconds after the last."""
    began = bells.flags().time()
    until(lambda: bells.flags().time() > (began[0], began[1] + 2_000))
    make()
    bells.flush(20)


@contextmanager
def worker() -> Iterator[None]:
    """A worker of the `writes` queue."""

    def serve(*workspace_ids: str) -> None:
        for workspace_id in workspace_ids:
            writes.work(workspace_id)
        database.database.close()

    client = redis.Redis.from_url(settings().redis_url)
    broker = BlockingBroker(client=client, middleware=[Hearing()])  # type: ignore[no-untyped-call]
    dramatiq.actor(queue_name="writes", actor_name="writes", broker=broker)(serve)
    worker = Worker(broker, worker_threads=2)
    worker.start()
    try:
        yield
    finally:
        worker.stop()


def test_messages_do_not_outnumber_mailboxes_however_long_workers_are_away(owners: list[str]) -> None:
    make = Overdue(jobs.MAIL, overdue_seconds=0)

    for _ in range(20):
        go_round(make)

    assert rung_on("writes") == owners
    assert bells.flags().hlen("dramatiq:writes.msgs") <= WORKSPACES


def test_workers_that_are_back_apply_all_and_serve_what_comes_then(owners: list[str]) -> None:
    go_round(Overdue(jobs.MAIL, overdue_seconds=0))

    with worker():
        until(lambda: one("SELECT count(*) FROM jobs WHERE status = 'succeeded'") == WORKSPACES)
        late = write(owners[0])
        bells.ring(jobs.MAIL.queue, owners[0])
        until(lambda: Job.get_by_id(late.id).status == "succeeded")
        # A mailbox whose batch took a whole slice has its bell rung once more.
        until(lambda: not bells.flags().exists(*(bells.Bell("writes", owner).flag for owner in owners)))


def test_what_a_worker_takes_up_shows_that_a_bell_before_it_was_lost(owners: list[str]) -> None:
    make = Overdue(jobs.MAIL, overdue_seconds=0)
    go_round(make)
    bells.flags().delete("dramatiq:writes")
    bells.ring("writes", "ws_other")
    bells.flush(20)

    with worker():
        until(lambda: [go_round(make), one("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL")][1] == 0)
