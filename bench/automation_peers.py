"""The peers of the runs benchmark. They use another database on the service's PostgreSQL server."""

import subprocess
import time

import psycopg2

from bench.errors import BenchError
from bench.rivals import BIN, PROGRAMS
from bench.runs import Run
from bench.sites import Site

TABLE = """
CREATE TABLE contacts (
    id text PRIMARY KEY,
    first_name text,
    last_name text,
    tags text[] NOT NULL DEFAULT '{}',
    custom_fields jsonb NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now()
)
"""
WARM_RUNS = 20


class Peer:
    """A program that makes five updates of a contact's row for each run, `threads` runs at a time."""

    def __init__(self, site: Site, program: str, threads: int, contacts: int) -> None:
        self.name = f"{program}, {threads} connections"
        address = site.stack.postgres.create_database(f"{program}{threads}")
        with psycopg2.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute(TABLE)
            cursor.execute("INSERT INTO contacts (id) SELECT 'con_' || n FROM generate_series(0, %s) AS n", (contacts,))
        connection.close()
        self._contacts, self._next = contacts, 0
        self._process = subprocess.Popen(
            [str(BIN / "python"), f"{program}_peer.py"],
            cwd=PROGRAMS,
            env=site.stack.environment | {"DATABASE_URL": address, "THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._do(WARM_RUNS)

    def run(self, number: int) -> Run:
        """Makes `number` runs, each with a contact of its own. Raises BenchError."""
        began = time.monotonic()
        self._do(number)
        return Run(number, time.monotonic() - began, {})

    def close(self) -> None:
        """Ends the program."""
        self._process.communicate()

    def _do(self, number: int) -> None:
        first = self._next % (self._contacts - number)
        self._next = first + number
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{first} {number}\n".encode())
        self._process.stdin.flush()
        if self._process.stdout.readline() != b"done\n":
            raise BenchError(f"The peer {self.name} ended.")
