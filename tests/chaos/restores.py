"""The drill: a backup under load, the loss of the database, and its restore as docs/running.md tells."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.chaos.lives import Drilled, State, read_state
from tests.journeys.audit import unfinished
from tests.journeys.faults import empty_redis, slow
from tests.journeys.load import Accepted, Load
from tests.journeys.shops import Caller, Shop, open_shops
from tests.journeys.waiting import wait_until
from tests.listening import Ear
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SHOPS, WRITES = 3, 400
SECONDS_TO_SETTLE = 120
Say = Callable[[str], None]


@dataclass(frozen=True)
class Backup:
    """A dump. It shows the database as it was after `began` (monotonic; `began_at` is the same in Unix time)."""

    path: Path
    began: float
    began_at: float


def drill(stack: Stack, receiver: Receiver, say: Say, lease_seconds: float) -> list[str]:
    """Loses the database twice: Redis keeps its contents, and is emptied. Returns what is wrong."""
    return [
        f"drill, Redis {'emptied' if empties else 'kept'}: {flaw}"
        for empties in (False, True)
        for flaw in Drill(stack, receiver, say, lease_seconds).run(empties)
    ]


class Drill:
    """One loss and restore, with shops of its own."""

    def __init__(self, stack: Stack, receiver: Receiver, say: Say, lease_seconds: float) -> None:
        self._stack, self._receiver, self._say, self._lease_seconds = stack, receiver, say, lease_seconds
        self._flaws: list[str] = []

    def run(self, empties: bool) -> list[str]:
        shops = open_shops(self._stack, self._receiver, SHOPS)
        self._receiver.behaviour = slow
        with Load(shops, clients=2, pause_seconds=0.02) as load:
            load.go_on(WRITES)
            backup = self._back_up()
            load.go_on(WRITES)
        cursors = {shop.workspace_id: _cursor(shop.caller()) for shop in shops}
        ear = _listen(self._stack, shops[0])
        self._stack.postgres.kill()
        lost = self._read_lost_disk(shops)
        if empties:
            empty_redis(self._stack)
        restored, restarted_at = self._restore(backup, shops)
        if lost.partitions != restored.partitions:
            self._flaws.append("partitions were restored with other bounds")
        gone = [write for write in load.accepted if write.job_id not in restored.jobs]
        self._check_what_clients_hold(shops, gone, cursors, ear)
        since = [write for write in load.accepted if write.answered_at >= backup.began]
        again = self._send_again(shops, since, restored)
        wait_until(lambda: unfinished(self._stack, shops) == 0, SECONDS_TO_SETTLE, "all deliveries have ended")
        drilled = Drilled(
            accepted=load.accepted,
            before={write.job_id for write in load.accepted if write.answered_at < backup.began},
            again=again,
            restored=restored,
            lost=lost,
            end=read_state(self._stack, shops),
            earliest=backup.began_at - self._lease_seconds,
            restarted_at=restarted_at,
        )
        counts = [drilled.settle(self._stack, self._receiver, shop) for shop in shops]
        self._print_table(counts, empties)
        return self._flaws + drilled.flaws

    def _back_up(self) -> Backup:
        path, began, began_at = self._stack.directory / "backup", time.monotonic(), time.time()
        postgres = self._stack.postgres
        postgres.use("pg_dump", "--format=custom", f"--file={path}", f"--dbname={postgres.url}")
        self._say(f"backup under load in {time.monotonic() - began:.1f} s")
        return Backup(path, began, began_at)

    def _read_lost_disk(self, shops: Sequence[Shop]) -> State:
        """What was lost, for the count alone: nothing of it reaches the restored service."""
        self._stack.processes.stop()
        self._stack.postgres.start()
        state = read_state(self._stack, shops)
        self._stack.postgres.stop()
        shutil.rmtree(self._stack.postgres.data)
        return state

    def _restore(self, backup: Backup, shops: Sequence[Shop]) -> tuple[State, float]:
        """The restored database before any process ran, and when they were started (Unix time)."""
        postgres, processes, began = self._stack.postgres, self._stack.processes, time.monotonic()
        postgres.start()
        postgres.use("pg_restore", "--exit-on-error", f"--dbname={postgres.url}", str(backup.path))
        postgres.use("psql", "--quiet", f"--dbname={postgres.url}", "--command=ANALYZE")
        processes.upgrade()
        restored, restarted_at, took = read_state(self._stack, shops), time.time(), time.monotonic() - began
        processes.start()
        processes.wait_ready()
        self._say(f"restored in {took:.1f} s, ready {time.time() - restarted_at:.1f} s later")
        return restored, restarted_at

    def _check_what_clients_hold(
        self, shops: Sequence[Shop], gone: Sequence[Accepted], cursors: dict[str, str], ear: Ear
    ) -> None:
        """Jobs of lost writes are unknown, cursors go on from where they were, and listeners must read again."""
        callers = {shop.workspace_id: shop.caller() for shop in shops}
        for write in gone:
            if (status := callers[write.workspace_id].call("GET", f"jobs/{write.job_id}").status) != 404:
                self._flaws.append(f"{write.job_id} is lost, and its job gets {status}")
        for workspace_id, cursor in cursors.items():
            if (status := callers[workspace_id].call("GET", f"jobs?limit=1&cursor={cursor}").status) != 200:
                self._flaws.append(f"a cursor from before the loss gets {status}")
        ear.open()
        wait_until(lambda: "reset" in {each.kind for each in ear.listen().heard}, 20, "the listener is reset")
        ear.close()

    def _send_again(self, shops: Sequence[Shop], since: Sequence[Accepted], restored: State) -> dict[str, Accepted]:
        """Sends every write since the backup twice with its key, as clients do that know only when it began.

        Returns those that were lost, by their new jobs.
        """
        callers = {shop.workspace_id: shop.caller() for shop in shops}
        again = {}
        for write in since:
            sent_at = time.monotonic()
            headers = {"Idempotency-Key": write.key}
            caller = callers[write.workspace_id]
            answers = [caller.call("POST", "contacts", write.document, headers) for _ in range(2)]
            jobs = {answer.data["id"] for answer in answers}
            job_id = jobs.pop()
            if jobs or (write.job_id in restored.jobs) != (job_id == write.job_id):
                self._flaws.append(f"{write.job_id}, sent again with its key, became {job_id} {jobs or ''}")
            if job_id != write.job_id:
                again[job_id] = replace(write, job_id=job_id, sent_at=sent_at, answered_at=time.monotonic())
        return again

    def _print_table(self, counts: Sequence[dict[str, int]], empties: bool) -> None:
        self._say(f"Redis {'emptied' if empties else 'kept'}")
        self._say(f"{'shop':6}" + "".join(f"{name:>11}" for name in counts[0]))
        for number, row in enumerate(counts):
            self._say(f"{number:<6}" + "".join(f"{value:11}" for value in row.values()))
        self._say(f"{'all':6}" + "".join(f"{sum(row[name] for row in counts):11}" for name in counts[0]) + "\n")


def _cursor(caller: Caller) -> str:
    """A cursor behind the newest job, which the loss takes."""
    answer = caller.call("GET", "jobs?limit=1")
    assert answer.status == 200, answer
    return str(answer.document["meta"]["nextCursor"])


def _listen(stack: Stack, shop: Shop) -> Ear:
    """A listener with a place in the live updates, whose connection has ended."""
    ear = Ear(stack.realtime_port, headers={"Authorization": f"Bearer {shop.token}"}).open().until_placed()
    ear.close()
    return ear
