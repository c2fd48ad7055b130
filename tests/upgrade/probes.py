"""Probes: sessions that read and write tables all the time, and note how long they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from types import TracebackType
from typing import Self

import psycopg2
from psycopg2.errors import LockNotAvailable

PAUSE_SECONDS = 0.02
LONGEST_WAIT_MS = 1000  # for a lock; more is a failure
REPORT_SECONDS = 3.0  # for so long, somebody keeps every table from being changed


class Probes:
    """A reader and a writer for each table, and a report that reads all of them in long transactions.

    As a context manager they work inside the block. `longest`: by table and kind, the seconds of the slowest statement.
    `failures`: waits for a lock that were too long.
    """

    def __init__(self, url: str, keys: Iterable[tuple[str, str]]) -> None:
        """`keys`: the tables, each with the column that identifies its rows."""
        self.longest: dict[str, float] = {}
        self.failures: list[str] = []
        self._url, self._stopping = url, threading.Event()
        tables = list(keys)
        self._threads = [threading.Thread(target=self._report, args=([table for table, _ in tables],))]
        for table, key in tables:
            some = f"SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET 50"
            read = f"SELECT * FROM {table} WHERE {key} = %s"
            # Every column may change meanwhile, but not the key.
            write = f"UPDATE {table} SET {key} = {key} WHERE {key} = %s"
            self._threads += [
                threading.Thread(target=self._repeat, args=(f"{kind} {table}", some, statement))
                for kind, statement in {"read": read, "write": write}.items()
            ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, name: str, some: str, statement: str) -> None:
        with closing(psycopg2.connect(self._url)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(some)
            [key] = cursor.fetchone() or [None]
            # A slow disk does not count.
            cursor.execute(f"SET lock_timeout = {LONGEST_WAIT_MS}; SET synchronous_commit = off")
            while not self._stopping.wait(PAUSE_SECONDS):
                began = time.monotonic()
                try:
                    cursor.execute(statement, (key,))
                except LockNotAvailable:
                    self.failures.append(name)
                self.longest[name] = max(self.longest.get(name, 0), time.monotonic() - began)

    def _report(self, tables: Sequence[str]) -> None:
        with closing(psycopg2.connect(self._url)) as connection, connection.cursor() as cursor:
            while not self._stopping.wait(REPORT_SECONDS):
                for table in tables:
                    cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")
                self._stopping.wait(REPORT_SECONDS)
                connection.rollback()
