"""Sites: the service that the benchmarks run, a fresh stack with one workspace."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg2

from bench.load import Plan
from tests.stack.processes import ROOT, process_types
from tests.stack.stack import Stack

# Beside the data of `make up`. Not in /tmp, which may be in memory, where a commit costs nothing.
DATA = ROOT / ".data"
SETTINGS = {"RATE_LIMIT": "100000000"}  # limits rates as in production, but the limit is never reached
POSTGRES_SETTINGS = {"log_line_prefix": "%m [%p] %r ", "min_wal_size": "1GB"}
Tell = Callable[[str], None]  # prints a line about the progress of a section


class Site:
    """A stack, the token of its workspace, and numbers for new contacts."""

    def __init__(self, stack: Stack) -> None:
        made = stack.command("workspace", "create", "Bench")
        self.stack = stack
        self.workspace, self.token = made["workspace"]["id"], made["token"]
        self.path = f"/api/v1/workspaces/{self.workspace}/contacts"
        self._firsts = count(0, 10_000_000)

    def new_contacts(self) -> int:
        """Returns the first of ten million numbers that nothing else uses."""
        return next(self._firsts) % 10_000_000_000

    def plan(self, seconds: float, **options: Any) -> Plan:
        """Returns a plan that upserts new contacts of the workspace. `options`: further fields of Plan."""
        token = options.pop("token", self.token)
        return Plan(self.stack.port, self.path, token, self.new_contacts(), seconds, **options)

    def restricted_token(self, restriction: str) -> str:
        """Creates a token of the workspace with that restriction, and returns it."""
        return str(self.stack.command("token", "create", self.workspace, "--restrict", restriction)["token"])

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Runs a statement in autocommit mode, and returns its rows."""
        with self.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def cursor(self) -> Iterator[Any]:
        """Yields a cursor of a new connection in autocommit mode."""
        with closing(psycopg2.connect(self.stack.postgres.url)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                yield cursor


@contextmanager
def site(counts: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Site]:
    """Yields a site whose servers run and whose processes do not.

    `counts`: how many processes of a type there are; by default one of each.
    """
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DATA, prefix="bench-", ignore_cleanup_errors=True) as directory:
        all_counts = dict.fromkeys(process_types(), 1) | dict(counts or {})
        all_settings = SETTINGS | dict(settings or {})
        stack = Stack(Path(directory), all_counts, settings=all_settings, postgres_settings=POSTGRES_SETTINGS)
        try:
            stack.start_servers()
            stack.processes.upgrade()
            yield Site(stack)
        finally:
            stack.stop()


def start(site: Site, name: str | None = None) -> None:
    """Starts one process, or all that are not running, and waits until they are ready."""
    site.stack.processes.start(name)
    site.stack.processes.wait_ready()


def start_types(site: Site, *types: str) -> None:
    """Starts all processes of these types, and waits until they are ready."""
    for name in site.stack.processes.names:
        if name.rpartition(".")[0] in types:
            site.stack.processes.start(name)
    site.stack.processes.wait_ready()


def restart(site: Site) -> None:
    """Restarts the running processes and waits until they are ready."""
    processes = site.stack.processes
    running = [name for name in processes.names if processes.pids(name.rpartition(".")[0])]
    processes.stop()
    for name in running:
        processes.start(name)
    processes.wait_ready()
