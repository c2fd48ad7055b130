"""What is looked at each night: sizes, memory, time of claims, rows read without an index."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import psutil

from tests.journeys.audit import rows
from tests.stack.stack import Stack

MIB = 1024**2

# A partition counts as a part of its table. Tables and indexes apart, in bytes.
_SIZES = """
    SELECT coalesce(pg_partition_root(oid), oid)::regclass::text, sum(pg_table_size(oid))::bigint,
        sum(pg_indexes_size(oid))::bigint
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY 1
"""
_READ = "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables"
_DEAD = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables"
_PIECES = "SELECT count(*) FROM pg_class WHERE relispartition AND relkind = 'r'"
_CLOSED = "SELECT count(*) FROM billing_periods WHERE closed_at IS NOT NULL"
_ENTRY = re.compile(r"\n(?=\d{4}-\d\d-\d\d )")
_CLAIM = re.compile(r"duration: ([\d.]+) ms .*SKIP LOCKED", re.DOTALL)


@dataclass(frozen=True)
class Sample:
    """One night. Sizes are in bytes by table; memory is PSS in MiB by process type; claims are in milliseconds."""

    tables: Mapping[str, int]
    indexes: Mapping[str, int]
    memory: Mapping[str, float]
    claims: Sequence[float]
    read: int
    dead: int
    partitions: int
    closed: int
    keys: int

    def size(self, table: str) -> float:
        """Of a table with its indexes and partitions, in MiB."""
        return (self.tables.get(table, 0) + self.indexes.get(table, 0)) / MIB

    @property
    def figures(self) -> dict[str, float]:
        """By the name that the table has for it."""
        slowest = sorted(self.claims)[int(0.95 * len(self.claims))] if self.claims else 0.0
        return {
            "tables MiB": sum(self.tables.values()) / MIB,
            "indexes MiB": sum(self.indexes.values()) / MIB,
            "memory MiB": sum(self.memory.values()),
            "claim ms": median(self.claims) if self.claims else 0.0,
            "claim p95": slowest,
            "read 1000": self.read / 1000,
            "dead": self.dead,
            "partitions": self.partitions,
            "closed": self.closed,
            "keys": self.keys,
        }


class Sampler:
    """Takes samples of a stack, whose PostgreSQL logs the duration of each statement."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._read = self._log_end = 0

    def begin(self) -> None:
        """Claims and rows read count from here on."""
        self._read = self._count(_READ)
        self._log_end = self._stack.postgres.log.stat().st_size

    def take(self) -> Sample:
        """The figures of now, and of what was done since `begin`."""
        sizes = rows(self._stack, _SIZES)
        return Sample(
            tables={name: size for name, size, _ in sizes},
            indexes={name: size for name, _, size in sizes},
            memory=self._memory(),
            claims=self._claims(),
            read=max(0, self._count(_READ) - self._read),  # a crash resets it
            dead=self._count(_DEAD),
            partitions=self._count(_PIECES),
            closed=self._count(_CLOSED),
            keys=self._count("SELECT count(*) FROM idempotency_keys"),
        )

    def _count(self, query: str) -> int:
        return int(rows(self._stack, query)[0][0])

    def _claims(self) -> list[float]:
        with self._stack.postgres.log.open("rb") as log:
            log.seek(self._log_end)
            entries = _ENTRY.split(log.read().decode(errors="replace"))
        return [float(found[1]) for found in map(_CLAIM.search, entries) if found]

    def _memory(self) -> dict[str, float]:
        """Each page counts once, divided by how many processes share it."""
        found: dict[str, float] = defaultdict(float)
        for name in self._stack.processes.names:
            leader = psutil.Process(self._stack.processes.pid(name))
            for process in (leader, *leader.children(recursive=True)):
                found[name.rpartition(".")[0]] += process.memory_full_info().pss / MIB
        return found
