"""The peers of the deliveries benchmark: installed on first use, fed, and run.

They run with the service's own servers.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg2

from bench import runs
from bench.errors import BenchError
from bench.nginx import Nginx
from bench.runs import Run
from bench.sites import DATA, Site
from tests.stack.process import Process

PROGRAMS = Path(__file__).parent / "peers"
HOME = DATA / "bench-peers"
TABLE = """
CREATE TABLE attempts (
    id bigserial PRIMARY KEY,
    delivery text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    duration_ms integer NOT NULL,
    status integer,
    response text
)
"""
ADDRESSES = 20
WARM_DELIVERIES = 400
NODE = (20, 18)


class NotInstalled(Exception):
    """A peer cannot be run here; the message says why."""


@dataclass(frozen=True)
class Kind:
    """A peer: its name, its database of Redis, and its commands with their directory."""

    name: str
    redis_database: int
    directory: Path
    worker: str
    feeder: str
    processes: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """Installs the peer's packages if they are missing. Raises NotInstalled."""
        (_install_node if self.worker.startswith("node") else install_python)()


BIN = HOME / "venv" / "bin"
_NODE = HOME / "bullmq"

# The fastest of these settings: pools prefork (4, 8, 16), threads (8, 32) and solo; 1, 2, 4 and 8 workers; prefetching
# 8, 16, 32 and 64. A worker's main process waits for Redis at every message, so several workers do more, and solo
# workers save the pool.
CELERY = Kind(
    "Celery",
    2,
    PROGRAMS,
    f"{BIN}/celery --app celery_peer worker --queues deliveries --pool solo"
    " --hostname worker{number}"
    " --without-gossip --without-mingle --without-heartbeat --loglevel WARNING",
    f"{BIN}/python celery_peer.py",
    processes=8,
    settings={"PREFETCH": "16"},
)
# No other configuration was tried.
DRAMATIQ = Kind(
    "Dramatiq",
    3,
    PROGRAMS,
    f"{BIN}/dramatiq dramatiq_peer --processes 2 --threads 8",
    f"{BIN}/python dramatiq_peer.py",
    settings={"dramatiq_worker_timeout": "100"},
)
# Two processes with 32 requests each are slower: PostgreSQL, Redis and nginx need the other core.
BULLMQ = Kind(
    "BullMQ",
    4,
    _NODE,
    "node worker.js",
    "node feed.js",
    processes=1,
    settings={"CONCURRENCY": "64", "NODE_ENV": "production"},
)
KINDS = (CELERY, DRAMATIQ, BULLMQ)


class Rival:
    """A peer whose processes run until `stop`, and are paused between runs."""

    def __init__(self, kind: Kind, site: Site, nginx: Nginx, body: str) -> None:
        self.name = kind.name
        kind.install()
        stack = site.stack
        self._site, self._nginx = site, nginx
        self._database = stack.postgres.create_database(kind.name.lower())
        self._recorded = 0
        environment = stack.environment | {
            "DATABASE_URL": self._database,
            "REDIS_URL": stack.redis.url.removesuffix("0") + str(kind.redis_database),
            "CA_FILE": str(stack.certificates.ca_file),
            "SECRET": "whsec_" + "0" * 32,
            "ADDRESSES": json.dumps([f"{nginx.url}/{kind.name}/{number}" for number in range(ADDRESSES)]),
            "BODY": body,
            **kind.settings,
        }
        self._query(TABLE)
        self._workers = [
            Process(
                f"{kind.name}.{number}",
                kind.worker.format(number=number),
                environment,
                stack.directory / "logs",
                kind.directory,
            )
            for number in range(1, kind.processes + 1)
        ]
        self._feeder = subprocess.Popen(
            kind.feeder.split(), cwd=kind.directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for worker in self._workers:
            worker.start()

    def run(self, number: int) -> Run:
        """Makes one run, after a warm-up. Raises BenchError."""
        self._send(signal.SIGCONT)
        try:
            return self._run(number)
        finally:
            # Otherwise, the workers would poll Redis while others are measured.
            self._send(signal.SIGSTOP)

    def stop(self) -> None:
        """Ends the peer's processes. Safe to repeat."""
        self._send(signal.SIGCONT)
        for worker in self._workers:
            worker.ask_to_stop()
        for worker in self._workers:
            worker.finish(time.monotonic() + 5)
        self._feeder.communicate()

    def _run(self, number: int) -> Run:
        self._feed(WARM_DELIVERIES)
        self._expected = self._recorded + WARM_DELIVERIES
        self._feed("release")
        runs.wait(WARM_DELIVERIES, self._left, time.monotonic())
        self._feed(number)
        self._expected += number
        run = runs.run(self._site, self._nginx, number, lambda: self._feed("release"), self._left)
        self._recorded = self._expected
        if failed := self._query("SELECT count(*) FROM attempts WHERE status <> 200"):
            raise BenchError(f"{failed} deliveries of {self.name} failed.")
        return run

    def _send(self, signal_number: signal.Signals) -> None:
        for worker in self._workers:
            worker.send(signal_number, tree=True)

    def _left(self) -> int:
        if ended := [worker for worker in self._workers if worker.failures]:
            lines = "\n".join(ended[0].last_lines())
            raise BenchError(f"{ended[0].name} ended:\n{lines}")
        return self._expected - self._query("SELECT count(*) FROM attempts")

    def _feed(self, line: object) -> None:
        assert self._feeder.stdin is not None
        assert self._feeder.stdout is not None
        self._feeder.stdin.write(f"{line}\n".encode())
        self._feeder.stdin.flush()
        if self._feeder.stdout.readline() != b"done\n":
            raise BenchError(f"What feeds {self.name} ended.")

    def _query(self, sql: str) -> int:
        """Returns the single number in the result; 0 if there is none."""
        connection = psycopg2.connect(self._database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return int(cursor.fetchone()[0]) if cursor.description else 0
        finally:
            connection.close()


def install_python() -> None:
    """Installs the Python peers' packages if they are missing. Raises NotInstalled."""
    requirements, stamp = PROGRAMS / "requirements.txt", HOME / "venv" / "installed"
    if _is_current(stamp, requirements):
        return
    HOME.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", "--clear", str(HOME / "venv")], HOME)
    pip = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    _run([*pip, "-r", str(requirements)], HOME)
    shutil.copy(requirements, stamp)


def _install_node() -> None:
    if not shutil.which("node") or not shutil.which("npm"):
        raise NotInstalled("node and npm are not installed; the BullMQ peer needs Node.js 20.18 or later")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(part) for part in version.lstrip("v").split(".")[:2]) < NODE:
        raise NotInstalled(f"node is {version}; the BullMQ peer needs 20.18 or later")
    _NODE.mkdir(parents=True, exist_ok=True)
    source = PROGRAMS / "bullmq"
    stamp = _NODE / "installed"
    is_installed = _is_current(stamp, source / "package-lock.json")
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, _NODE)
    if not is_installed:
        _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], _NODE)
        shutil.copy(source / "package-lock.json", stamp)


def _is_current(stamp: Path, source: Path) -> bool:
    return stamp.exists() and stamp.read_bytes() == source.read_bytes()


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode != 0:
        raise NotInstalled(f"{' '.join(command)} failed:\n{done.stderr.strip()[-2000:]}")
