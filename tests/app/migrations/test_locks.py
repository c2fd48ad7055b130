"""No migration makes readers or writers of a large table wait for work that grows with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from app import migrations
from app.database import rows
from app.migrations import running, scripts

# Tables with so few rows that changing all of them takes milliseconds.
SMALL = {"automation_counts", "channels", "endpoints", "members"}
BLOCKING = ("ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock")


def tables() -> set[str]:
    return {name for (name,) in rows("SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')")}


def locked() -> set[str]:
    """The tables that this transaction keeps others from reading or writing."""
    found = rows(
        "SELECT coalesce(pg_partition_root(relation), relation)::regclass::text FROM pg_locks"
        " JOIN pg_class ON oid = relation AND relkind IN ('r', 'p')"
        " WHERE pid = pg_backend_pid() AND mode = ANY(%s)",
        (list(BLOCKING),),
    )
    return {name for (name,) in found}


def scans() -> dict[str, int]:
    """How often this session has scanned each table or an index of it."""
    found = rows(
        "SELECT coalesce(pg_partition_root(relid), relid)::regclass::text, sum(seq_scan + coalesce(idx_scan, 0))"
        " FROM pg_stat_xact_user_tables GROUP BY 1"
    )
    return {name: int(number) for name, number in found}


class Watch:
    """Watches the transactions of migrations."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.faults: list[str] = []
        self._run, self._execute = migrations._run, running._execute
        monkeypatch.setattr(migrations, "_run", self.run)
        monkeypatch.setattr(running, "_execute", self.execute)
        # An empty table gets its indexes as a large one does.
        monkeypatch.setattr(running, "SMALL_BYTES", 0)

    def run(self, name: str) -> None:
        self._name, self._large = name, tables() - SMALL
        self._run(name)

    def execute(self, statements: Sequence[str]) -> None:
        before = scans()
        self._execute(statements)
        read = {name for name, number in scans().items() if number > before.get(name, 0)}
        if (held := locked() & self._large) and (read := read & self._large):
            self.faults.append(f"{self._name} locks {', '.join(sorted(held))} and reads {', '.join(sorted(read))}")
        for statement in statements:
            changed = re.match(r"(?:UPDATE|DELETE FROM) (\w+)", statement)
            if changed and changed[1] in self._large:
                self.faults.append(f"{self._name} changes rows of {changed[1]} in one transaction")


def test_no_transaction_locks_a_large_table_and_reads_one(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)

    migrations.upgrade()

    assert watch.faults == []


BLOCKING_STATEMENTS = (
    "CREATE INDEX ON contacts (email)",
    "ALTER TABLE jobs ALTER COLUMN token_id SET NOT NULL",
    "ALTER TABLE messages ADD CHECK (status <> '')",
    "ALTER TABLE deliveries ADD FOREIGN KEY (workspace_id) REFERENCES workspaces",
    "ALTER TABLE messages ADD COLUMN random_id text DEFAULT gen_random_uuid()",
    "ALTER TABLE events ALTER COLUMN depth TYPE bigint",
    "DO $$ BEGIN UPDATE contacts SET email = ''; LOCK TABLE jobs; END $$",
    "UPDATE runs SET depth = 0",
    "DELETE FROM runs",
)


def test_what_would_block_a_large_table_is_found(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations.upgrade()
    watch = Watch(monkeypatch)
    monkeypatch.setattr(migrations, "pending", lambda: ["0087_baseline.sql"])
    rows("DELETE FROM migrations")
    monkeypatch.setattr(scripts, "steps", lambda _: [scripts.Transaction([each]) for each in BLOCKING_STATEMENTS])

    migrations.upgrade()

    assert len(watch.faults) == len(BLOCKING_STATEMENTS)
