"""One process of the Procfile: started, watched and restarted."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from tests.stack.errors import last_lines
from tests.stack.freezing import freeze_tree, thaw_tree

PAUSE_SECONDS = 0.5
SETTLED_SECONDS = 1.5


class Process:
    """Runs a command in a session of its own, and restarts it whenever it ends until it is asked to stop."""

    def __init__(
        self,
        name: str,
        command: str,
        environment: Mapping[str, str],
        directory: Path,
        root: Path,
        on_line: Callable[[str, str], None] | None = None,
        on_end: Callable[[str, int], None] | None = None,
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.failures = 0
        self._command = command
        self._environment = environment
        self._root = root
        self._on_line = on_line
        self._on_end = on_end
        self._stopping = threading.Event()
        # Makes stopping and restarting exclude each other.
        self._lock = threading.Lock()
        self._forgiven: int | None = None
        self._leader: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._log_start = 0
        self._watcher: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """The pid of the running leader; None if there is none."""
        leader = self._leader
        return leader.pid if leader is not None and leader.returncode is None else None

    @property
    def has_settled(self) -> bool:
        """Whether it has run long enough for startup errors to show; true if it is not meant to run."""
        return self._watcher is None or (self.pid is not None and time.monotonic() - self._started_at > SETTLED_SECONDS)

    def start(self) -> None:
        """Start the command, unless it is running. Safe to repeat."""
        if self._watcher is None:
            self._stopping.clear()
            self._launch()
            self._watcher = threading.Thread(target=self._watch, name=self.name, daemon=True)
            self._watcher.start()

    def send(self, signal_number: int, tree: bool) -> None:
        """Send a signal to the leader, or with `tree` to all its processes. Waits for the end after SIGKILL."""
        pid = self.pid
        if pid is None:
            return
        self._forgiven = pid
        with suppress(ProcessLookupError):
            (os.killpg if tree else os.kill)(pid, signal_number)
        while signal_number == signal.SIGKILL and self.pid == pid:
            time.sleep(0.005)

    def freeze(self) -> None:
        """Make all its processes hang until `thaw`."""
        if (pid := self.pid) is not None:
            self._forgiven = pid
            freeze_tree(pid)

    def thaw(self) -> None:
        """Resume after `freeze`. Safe to repeat."""
        if (pid := self.pid) is not None:
            thaw_tree(pid)

    def ask_to_stop(self) -> None:
        """Send SIGTERM, to the leader only: it passes the signal on, and a second one would cut its children short."""
        with self._lock:
            self._stopping.set()
        self.send(signal.SIGTERM, tree=False)

    def finish(self, deadline: float) -> None:
        """Wait until the deadline (monotonic), then kill what is left."""
        if self._watcher is None:
            return
        self._watcher.join(max(0.0, deadline - time.monotonic()))
        self.send(signal.SIGKILL, tree=True)
        self._watcher.join()
        self._watcher = None

    def last_lines(self) -> list[str]:
        """The last lines that the latest run printed."""
        return last_lines(self.log, from_byte=self._log_start)

    def _launch(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._leader = subprocess.Popen(
                f"exec {self._command}",
                shell=True,
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log if self._on_line is None else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started_at = time.monotonic()
        if self._leader.stdout is not None:
            threading.Thread(target=self._copy, args=(self._leader.stdout,), daemon=True).start()

    def _watch(self) -> None:
        while True:
            assert self._leader is not None
            code = self._leader.wait()
            self._end_children(self._leader.pid)
            if self._stopping.is_set():
                return
            if self._forgiven != self._leader.pid:
                self.failures += 1
            if self._on_end is not None:
                self._on_end(self.name, code)
            self._stopping.wait(PAUSE_SECONDS)
            with self._lock:
                if self._stopping.is_set():
                    return
                self._launch()

    def _end_children(self, group: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)

    def _copy(self, lines: IO[bytes]) -> None:
        assert self._on_line is not None
        with self.log.open("ab") as log:
            for line in lines:
                log.write(line)
                log.flush()
                self._on_line(self.name, line.decode(errors="replace").rstrip("\n"))
