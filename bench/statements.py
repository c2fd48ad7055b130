"""SQL statements: counts them in the server's log."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

from bench import sites
from bench.costs import TYPES
from bench.errors import BenchError
from bench.sites import Site

_LINE = re.compile(r"^\d{4}-\d\d-\d\d \S+ \S+ \[\d+\] (\S*) ?(\w+):  ", re.MULTILINE)
_STATEMENT = re.compile(r"(?:statement|execute [^:]+): (.*)", re.DOTALL)


@dataclass
class Statements:
    """How often each process type sent each kind of statement."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.counts.total()

    def check(self, writes: int) -> None:
        """Raises BenchError if the log is incomplete.

        Every write takes at least one statement of the web process.
        """
        logged = self.by_process()["web"]
        if logged < writes:
            raise BenchError(f"The log has {logged} statements of the web process, and there were {writes} writes.")

    def by_process(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for (process, _), number in self.counts.items():
            found[process] += number
        return found


@contextmanager
def counted(site: Site) -> Iterator[Statements]:
    """Counts every statement in the block, including BEGIN, COMMIT and SAVEPOINT.

    The counts are filled in at the end of the block. Restarts the running processes before and after.
    """
    statements = Statements()
    with logging(site):
        begin = site.stack.postgres.log.stat().st_size
        yield statements
        statements.counts = logged_since(site, begin)


@contextmanager
def logging(site: Site) -> Iterator[None]:
    """Logs every statement in the block. Restarts the running processes before and after."""
    _set_logging(site, "SET log_statement = 'all'")
    try:
        yield
    finally:
        _set_logging(site, "RESET log_statement")


def logged_since(site: Site, begin: int) -> Counter[tuple[str, str]]:
    """Counts the statements in the log from byte `begin` on, by process type and kind of statement.

    Process types that no longer run count as "other".
    """
    end = site.stack.postgres.log.stat().st_size
    types = _types_by_port(site)
    with site.stack.postgres.log.open("rb") as log:
        log.seek(begin)
        text = log.read(end - begin).decode(errors="replace")
    counts: Counter[tuple[str, str]] = Counter()
    for address, statement in _entries(text):
        port = int(address.rpartition("(")[2].rstrip(")") or 0)
        counts[types.get(port, "other"), normal(statement)] += 1
    return counts


def normal(statement: str) -> str:
    """Returns the statement without its values, so that equal statements are counted together."""
    statement = re.sub(r"--[^\n]*", " ", statement)
    statement = re.sub(r"E?'(?:[^'\\]|''|\\.)*'", "?", statement)
    statement = re.sub(r"ARRAY\[[^]]*\]", "?", statement)
    statement = re.sub(r"\b\d+(?:\.\d+)?\b", "?", statement)
    statement = re.sub(r"\?(?:\s*,\s*\?)+", "?…", statement)
    statement = re.sub(r'(SAVEPOINT|ROLLBACK TO SAVEPOINT) "?\w+"?', r"\1 ?", statement)
    return " ".join(statement.split()).replace('"', "")


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yields each statement, with the address it came from."""
    marks = list(_LINE.finditer(text))
    ends = [*(mark.start() for mark in marks), len(text)][1:]
    for mark, end in zip(marks, ends, strict=True):
        found = _STATEMENT.match(text[mark.end() : end]) if mark[2] == "LOG" else None
        if found:
            yield mark[1], found[1]


def _set_logging(site: Site, change: str) -> None:
    # A new session applies the change from its first statement on; an existing one may do so seconds late.
    site.query(f"ALTER DATABASE bellhop {change}")
    sites.restart(site)


def _types_by_port(site: Site) -> dict[int, str]:
    """Returns the process type by the local port of its connections."""
    found: dict[int, str] = {}
    for kind in TYPES:
        for pid in site.stack.processes.pids(kind):
            leader = psutil.Process(pid)
            for process in (leader, *leader.children(recursive=True)):
                found |= {connection.laddr.port: kind for connection in process.net_connections("tcp")}
    return found
