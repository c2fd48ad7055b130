"""Runs the process types of the Procfile and keeps them running, like a hosting platform."""

import atexit
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from honcho.environ import parse_procfile

from tests.stack.errors import DidNotStart
from tests.stack.process import Process

ROOT = Path(__file__).parents[2]
GRACE_SECONDS = 25
UPGRADE = [sys.executable, "-m", "app", "db", "upgrade"]


PROCFILE, SMALL = ROOT / "Procfile", ROOT / "Procfile.small"
# The one process of Procfile.small that does the work of all types but `web`.
WORKER = "worker"


def process_types(procfile: Path = PROCFILE) -> dict[str, str]:
    """The commands of a Procfile by process type, in its order, without `release`, which is no process that runs."""
    found = dict(parse_procfile(procfile.read_text()).processes)
    found.pop("release", None)
    return found


class Processes:
    """Any number of each process type: `{"web": 1, "writes": 4}` are web.1, writes.1 … writes.4.

    With Procfile.small these are web.1 and worker.1, and the name of any other process means worker.1.

    A process that ends unasked is restarted after half a second. Each logs to `<name>.log` in the directory.
    `on_line(name, line)` is called for every line, `on_end(name, code)` for every unasked end. The code is in the
    folder of the Procfile.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        environment: Mapping[str, str],
        directory: Path,
        on_line: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, int], None] | None = None,
        procfile: Path = PROCFILE,
    ) -> None:
        self.environment = dict(environment)
        self.directory = directory
        self.root = procfile.parent
        commands = process_types(procfile)
        if WORKER in commands:
            counts = {kind if kind in commands else WORKER: 1 for kind in counts}
        unknown = counts.keys() - commands.keys()
        if unknown:
            raise ValueError(f"The Procfile has no process type {', '.join(sorted(unknown))}.")
        self._processes = {
            f"{kind}.{number}": Process(
                f"{kind}.{number}", command, self.environment, directory, self.root, on_line=on_line, on_end=on_end
            )
            for kind, command in commands.items()
            for number in range(1, counts.get(kind, 0) + 1)
        }
        atexit.register(self.stop)

    @property
    def names(self) -> list[str]:
        """The names of all processes, in the order of the Procfile."""
        return list(self._processes)

    def names_of(self, kind: str) -> list[str]:
        """The names of the processes that do the work of a process type."""
        names = [name for name in self._processes if name.rpartition(".")[0] == kind]
        # Nothing but a `web` does its work.
        return names or [name for name in self._processes if name == f"{WORKER}.1" and kind != "web"]

    def upgrade(self) -> None:
        """Run the pending migrations. Raises DidNotStart if one fails."""
        done = subprocess.run(UPGRADE, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DidNotStart("db upgrade", (done.stdout + done.stderr).splitlines()[-20:])

    def start(self, name: str | None = None) -> None:
        """Start one process, or all in the order of the Procfile. Running ones are left alone."""
        for process in self._chosen(name):
            process.start()

    def stop(self, name: str | None = None) -> None:
        """Send SIGTERM to one process or all, and SIGKILL to what is left after the grace period. Safe to repeat."""
        chosen = self._chosen(name)
        deadline = time.monotonic() + GRACE_SECONDS
        for process in chosen:
            process.ask_to_stop()
        for process in chosen:
            process.finish(deadline)

    def kill(self, name: str, signal_number: int = signal.SIGKILL, tree: bool = True) -> None:
        """Send a signal to a process and its children, or only to the leader. If it ends, it is restarted.

        `name` is a process (`writes.2`) or a type, which means its first process.
        """
        self._find(name).send(signal_number, tree)

    def freeze(self, name: str) -> None:
        """Make a process, or the first one of a type, hang until `thaw`."""
        self._find(name).freeze()

    def thaw(self, name: str) -> None:
        """Resume after `freeze`. Safe to repeat."""
        self._find(name).thaw()

    def pids(self, kind: str) -> list[int]:
        """The pids of the running leaders that do the work of a process type."""
        pids = map(self.pid, self.names_of(kind))
        return [pid for pid in pids if pid is not None]

    def pid(self, name: str) -> int | None:
        """The pid of a process's leader; None while it is not running."""
        return self._find(name).pid

    def log(self, name: str) -> Path:
        """The log file of a process, or of the first process of a type."""
        return self._find(name).log

    def wait_ready(self, timeout_seconds: float = 180) -> None:
        """Wait until every process has run for a while and the web process, if any, answers /readyz with 200.

        Raises DidNotStart with the name of a process that ended meanwhile and was not killed here.
        """
        failures_before = {name: process.failures for name, process in self._processes.items()}
        deadline = time.monotonic() + timeout_seconds
        while not self._is_ready():
            for name, process in self._processes.items():
                if process.failures > failures_before[name] or time.monotonic() > deadline:
                    raise DidNotStart(name, process.last_lines())
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        settled = all(process.has_settled for process in self._processes.values())
        return settled and (not self.pids("web") or self._web_is_ready())

    def _web_is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.environment['BASE_URL']}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _chosen(self, name: str | None) -> list[Process]:
        return list(self._processes.values()) if name is None else [self._find(name)]

    def _find(self, name: str) -> Process:
        """The process of that name, or the first of that type."""
        return self._processes[name if name in self._processes else self.names_of(name.partition(".")[0])[0]]
