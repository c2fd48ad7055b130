"""Moves a workspace to another PostgreSQL while it is written to: how long its writes pause.

A prototype of what docs/scaling.md describes, on two stacks with one SECRET_KEY. PostgreSQL copies the rows that name
the workspace, then every change to them (a publication with row filters). At the end, the workspace's writes are held
for a moment, until its mail is worked off and its last change has arrived. Then they go to the other stack. The clients
here play the part of a router of requests.

A neighbour in the first stack keeps writing all the time. Afterwards, each accepted write must be among the contacts of
the other stack and among the webhooks received.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psycopg2

from app.models.contacts import SEGMENT_SIZE
from bench.errors import BenchError
from bench.figures import Row, at_most, percentile
from bench.segments import OPEN_SEGMENTS
from bench.sites import DATA, Site, Tell, start_types
from bench.sites import SETTINGS as OF_SITES
from tests.histories import typeid
from tests.journeys.audit import rows, unfinished
from tests.journeys.shops import NoAnswer, Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SETTINGS = {"SECRET_KEY": "0" * 64}
TYPES = ("web", "writes", "deliveries", "slow-deliveries", "retries", "scheduler")
LOGICAL = {
    **{"wal_level": "logical", "max_replication_slots": "64", "max_wal_senders": "64"},
    **{"max_logical_replication_workers": "16", "max_sync_workers_per_subscription": "4"},
}
CLIENTS, REST_SECONDS, MOST_SECONDS = 3, 0.02, 2.5
FULL, QUICK = (200_000, 10.0), (5_000, 2.0)  # contacts, and the seconds of writing before the move
# These rows are not copied: a place in a live stream is a snapshot of one database, so listeners begin anew.
LEFT_BEHIND = ("updates",)
# Numbers that the two databases generate must differ.
FIRST_NUMBER = 2**48

_CONTACTS = """
    INSERT INTO contacts (id, workspace_id, external_id, email, first_name, tags, custom_fields, segment, created_at,
        updated_at)
    SELECT {id}, '{workspace}', 'customer-' || n, 'customer.' || n || '@example.com', 'Ada', ARRAY['regular'], '{{}}',
        n / {segment_size}, now() - n * interval '1 second', now()
    FROM generate_series(1, {contacts}) AS n
"""
_TABLES = """
    SELECT pg_class.relname, relkind = 'p', relispartition FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attname = 'workspace_id'
    ORDER BY 1
"""


class Clients:
    """Clients that create contacts of a shop, and note when each contact was accepted.

    Each client sends the next request soon after the last was accepted.
    """

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.accepted: dict[str, float] = {}
        self._may_write = threading.Event()
        self._may_write.set()
        self._is_over = False
        self._writing = threading.Lock()
        self._under_way = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Runs the clients during the block. Raises what one of them raised."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(self._write, client) for client in range(CLIENTS)]
            try:
                yield
            finally:
                self._is_over = True
                self._may_write.set()
        for client in clients:
            client.result()

    def hold(self) -> None:
        """Holds the clients back until `go_on`. Returns when no request is in flight."""
        self._may_write.clear()
        wait_until(lambda: self._under_way == 0, 30, "no request is under way")

    def go_on(self, base_url: str) -> None:
        """Lets the clients write to this stack."""
        self.shop = replace(self.shop, base_url=base_url)
        self._may_write.set()

    def pauses(self) -> list[float]:
        """Returns the seconds between each accepted write and the next."""
        return [after - before for before, after in pairwise(sorted(self.accepted.values()))]

    def _write(self, client: int) -> None:
        shop, caller, number = self.shop, self.shop.caller(), 0
        while not self._is_over:
            self._may_write.wait()
            with self._writing:
                if not self._may_write.is_set():
                    continue
                self._under_way += 1
            if shop is not self.shop:
                shop, caller = self.shop, self.shop.caller()
            name = f"new-{client}-{number}"
            try:
                answer = caller.call("POST", "contacts", {"external_id": name})
            except NoAnswer as error:
                raise BenchError(f"A write got no answer: {error!r}") from error
            finally:
                with self._writing:
                    self._under_way -= 1
            if answer.status != 202:
                raise BenchError(f"A write got {answer}.")
            self.accepted[name] = time.monotonic()
            number += 1
            time.sleep(REST_SECONDS)


def run(site: Site, tell: Tell, size: tuple[int, float] = FULL) -> list[Row]:
    contacts, seconds = size
    here = site.stack
    here.postgres.settings |= LOGICAL
    here.postgres.restart()
    start_types(site, *TYPES)
    with tempfile.TemporaryDirectory(dir=DATA, prefix="bench-", ignore_cleanup_errors=True) as directory:
        trusted = {"WEBHOOK_CA_FILE": str(here.certificates.ca_file)}
        settings = OF_SITES | SETTINGS | trusted
        there = Stack(Path(directory), dict.fromkeys(TYPES, 1), settings=settings, postgres_settings=LOGICAL)
        receiver = Receiver(here.certificates.ca_file.parent)
        receiver.start()
        try:
            there.start()
            _number_from(there, FIRST_NUMBER)
            shop, neighbour = open_shop(here, receiver, "Moving"), open_shop(here, receiver, "Staying")
            _seed(site, shop, contacts)
            tell(f"{contacts:,} contacts made")
            return _move(here, there, Clients(shop), Clients(neighbour), receiver, seconds, contacts)
        finally:
            there.stop()
            receiver.stop()


def _move(
    here: Stack, there: Stack, moving: Clients, neighbour: Clients, receiver: Receiver, seconds: float, contacts: int
) -> list[Row]:
    with _held(there) as let_go, neighbour.writing(), moving.writing():
        time.sleep(seconds)
        began = time.monotonic()
        tables = _publish(here, moving.shop.workspace_id)
        execute(there, f"CREATE SUBSCRIPTION moving CONNECTION '{here.postgres.url}' PUBLICATION moving")
        wait_until(lambda: _is_copied(there), 600, "every table is copied")
        copied = time.monotonic() - began
        time.sleep(seconds)
        moving.hold()
        wait_until(lambda: unfinished(here, [moving.shop]) == 0, 30, "the workspace has no mail")
        [(last,)] = rows(here, "SELECT pg_current_wal_insert_lsn()")
        wait_until(lambda: _has_arrived(here, last), 30, "the last change has arrived")
        let_go()
        moving.go_on(there.base_url)
        time.sleep(seconds)
    execute(there, "DROP SUBSCRIPTION moving")
    execute(here, "DROP PUBLICATION moving")
    wait_until(lambda: unfinished(there, [moving.shop]) == 0, 60, "the workspace has no mail")
    wait_until(lambda: unfinished(here, [neighbour.shop]) == 0, 60, "the neighbour has no mail")
    lost, twice = _audit(there, moving, receiver, contacts)
    lost_beside, twice_beside = _audit(here, neighbour, receiver, 0)
    beside = neighbour.pauses()
    return [
        Row("moving", f"tables copied of a workspace of {contacts:,} contacts", f"{len(tables)} in {copied:.1f} s"),
        at_most("moving", "longest time without an accepted write", max(moving.pauses()), MOST_SECONDS, " s", 2),
        Row(
            "moving", "the same of its neighbour", f"{max(beside):.2f} s, 99 % {1000 * percentile(beside, 0.99):.0f} ms"
        ),
        at_most("moving", f"lost of {len(moving.accepted):,} writes", lost, 0, places=0),
        at_most("moving", "webhooks received twice", twice, 0, places=0),
        at_most(
            "moving", f"lost of the neighbour's {len(neighbour.accepted):,}", lost_beside + twice_beside, 0, places=0
        ),
    ]


@contextmanager
def _held(stack: Stack) -> Iterator[Callable[[], None]]:
    """Freezes all processes but `web`, so that no mail of copied rows is worked on yet.

    Yields a function that lets them go on.
    """
    names = [name for name in stack.processes.names if not name.startswith("web")]

    def let_go() -> None:
        for name in names:
            stack.processes.thaw(name)

    for name in names:
        stack.processes.freeze(name)
    try:
        yield let_go
    finally:
        let_go()


def execute(stack: Stack, statement: str) -> None:
    """Runs a statement that cannot run in a transaction."""
    with closing(psycopg2.connect(stack.postgres.url)) as connection:
        connection.autocommit = True
        connection.cursor().execute(statement)


def _number_from(stack: Stack, first: int) -> None:
    for (name,) in rows(stack, "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"):
        execute(stack, f"ALTER SEQUENCE {name} RESTART WITH {first}")


def _seed(site: Site, shop: Shop, contacts: int) -> None:
    at = "((extract(epoch FROM now()) - n) * 1000)::bigint"
    values = {"workspace": shop.workspace_id, "contacts": contacts, "segment_size": SEGMENT_SIZE}
    site.query(_CONTACTS.format(id=typeid("con", at, "n"), **values))
    site.query(OPEN_SEGMENTS)
    site.query("VACUUM ANALYZE contacts")


def _publish(stack: Stack, workspace_id: str) -> list[str]:
    """Publishes the rows of the workspace. Returns the names of their tables."""
    found = [row for row in rows(stack, _TABLES) if row[0] not in LEFT_BEHIND]
    for name, is_partitioned, _ in found:
        if not is_partitioned:  # each change must say which workspace it belongs to
            execute(stack, f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    tables = [name for name, _, is_partition in found if not is_partition]
    filters = [f"{name} WHERE (workspace_id = '{workspace_id}')" for name in tables]
    filters.append(f"workspaces WHERE (id = '{workspace_id}')")
    execute(
        stack,
        f"CREATE PUBLICATION moving FOR TABLE {', '.join(filters)} WITH (publish_via_partition_root = true)",
    )
    return [*tables, "workspaces"]


def _is_copied(stack: Stack) -> bool:
    return not rows(stack, "SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r' LIMIT 1")


def _has_arrived(stack: Stack, last: str) -> bool:
    query = "SELECT replay_lsn >= %s::pg_lsn FROM pg_stat_replication WHERE application_name = 'moving'"
    return rows(stack, query, last) == [(True,)]


def _audit(stack: Stack, clients: Clients, receiver: Receiver, seeded: int) -> tuple[int, int]:
    """Returns how many accepted writes are lost, and how many webhooks came twice.

    A write is lost if its contact or its webhook is missing.
    """
    workspace_id = clients.shop.workspace_id
    names = {name for (name,) in rows(stack, "SELECT external_id FROM contacts WHERE workspace_id = %s", workspace_id)}
    received = [each.delivery_id for each in list(receiver.received) if each.path == clients.shop.hook]
    missing = len(clients.accepted) + seeded - len(names)
    return max(missing, len(clients.accepted) - len(set(received))), len(received) - len(set(received))
