"""The drill: a backup under load, the loss of the database, and its restore as docs/running.md tells."""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.journeys.audit import rows, unfinished
from tests.journeys.faults import slow
from tests.journeys.load import Accepted, Load
from tests.journeys.shops import Shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SHOPS, WRITES = 3, 400
SECONDS_TO_SETTLE = 120
# An attempt is recorded a moment after it has arrived.
LATE_SECONDS = 3.0
Say = Callable[[str], None]

_JOBS = "SELECT id FROM jobs WHERE workspace_id = %s"
_DELIVERIES = "SELECT id FROM deliveries WHERE workspace_id = %s"
_SENT = """
    SELECT job_id, deliveries.id FROM jobs JOIN events ON job_id = jobs.id JOIN deliveries ON event_id = events.id
    WHERE jobs.id = ANY(%s) AND jobs.status = 'succeeded' AND deliveries.status = 'delivered'
"""


@dataclass(frozen=True)
class Backup:
    """A dump. It shows the database as it was after `began` (monotonic; `began_at` is the same in Unix time)."""

    path: Path
    began: float
    began_at: float
    seconds: float


def drill(stack: Stack, receiver: Receiver, say: Say) -> list[str]:
    """Returns what is wrong: what was accepted before the backup and is lost, or came again without a reason."""
    shops = open_shops(stack, receiver, SHOPS)
    receiver.behaviour = slow
    with Load(shops, clients=2, pause_seconds=0.02) as load:
        load.go_on(WRITES)
        backup = _back_up(stack)
        load.go_on(WRITES)
    stack.postgres.kill()
    lost_at, began = time.time(), time.monotonic()
    _restore(stack, backup)
    say(f"backup in {backup.seconds:.1f} s; the restored service was ready after {time.monotonic() - began:.1f} s")
    known = {job_id for shop in shops for (job_id,) in rows(stack, _JOBS, shop.workspace_id)}
    gone = [write for write in load.accepted if write.job_id not in known]
    _write_again(shops, gone)
    wait_until(lambda: unfinished(stack, shops) == 0, SECONDS_TO_SETTLE, "all deliveries have ended")
    before = [write for write in load.accepted if write.answered_at < backup.began]
    flaws = list(_lost(stack, receiver, before))
    arrivals = _arrivals(receiver, shops)
    restored = {delivery for shop in shops for (delivery,) in rows(stack, _DELIVERIES, shop.workspace_id)}
    repeated = {id: times for id, times in arrivals.items() if len(times) > 1}
    for id, (first, *_) in repeated.items():
        if first < backup.began_at - LATE_SECONDS:
            flaws.append(f"{id} came again, though it was delivered long before the backup")
    most = sum(
        backup.began_at - LATE_SECONDS <= times[0] <= lost_at for id, times in arrivals.items() if id in restored
    )
    say(
        f"accepted {len(load.accepted)}, before the backup {len(before)}, gone with the database {len(gone)} (written"
        f" again); came twice {len(repeated)} of {most} that were delivered since and that the backup knows"
    )
    return flaws


def _back_up(stack: Stack) -> Backup:
    path, began, began_at = stack.directory / "backup", time.monotonic(), time.time()
    stack.postgres.use("pg_dump", "--format=custom", f"--file={path}", f"--dbname={stack.postgres.url}")
    return Backup(path, began, began_at, time.monotonic() - began)


def _restore(stack: Stack, backup: Backup) -> None:
    stack.processes.stop()
    shutil.rmtree(stack.postgres.data)
    stack.postgres.start()
    stack.postgres.use("pg_restore", "--exit-on-error", f"--dbname={stack.postgres.url}", str(backup.path))
    stack.postgres.use("psql", "--quiet", f"--dbname={stack.postgres.url}", "--command=ANALYZE")
    stack.processes.upgrade()
    stack.processes.start()
    stack.processes.wait_ready()


def _write_again(shops: Sequence[Shop], gone: Sequence[Accepted]) -> None:
    callers = {shop.workspace_id: shop.caller() for shop in shops}
    for write in gone:
        document = {"external_id": write.contact, "custom_fields": {write.client: write.number}}
        callers[write.workspace_id].apply("POST", "contacts", document)


def _lost(stack: Stack, receiver: Receiver, accepted: Sequence[Accepted]) -> Iterator[str]:
    """Writes that were not applied, or whose webhook never came."""
    found = dict(rows(stack, _SENT, [write.job_id for write in accepted]))
    received = {each.delivery_id for each in list(receiver.received)}
    for write in accepted:
        if found.get(write.job_id) not in received:
            yield f"{write.job_id}, accepted before the backup, is lost"


def _arrivals(receiver: Receiver, shops: Sequence[Shop]) -> dict[str, list[float]]:
    """When each delivery of the shops came, in Unix time."""
    arrivals: dict[str, list[float]] = defaultdict(list)
    for each in list(receiver.received):
        if each.path in {shop.hook for shop in shops}:
            arrivals[each.delivery_id].append(each.at)
    return arrivals
