"""Runs parts of the suite, says at once what fails, and at the end what each part did.

A part is a target of the Makefile, and what it prints goes to a file of its own. `python -m tests.lanes units,journeys
chaos` runs the first two beside each other, and then the third.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
LOGS = ROOT / ".data" / "lanes"
# A test that failed, as pytest names it while others still run: with the process that ran it in front, or without.
_FAILED = re.compile(
    r"^\[gw\d+\] \[ *\d+%\] (?:SUBFAILED\S*|FAILED|ERROR) (?P<shared>.+)$"
    r"|^(?P<alone>.+?) +(?:SUBFAILED\S*|FAILED|ERROR) +\[ *\d+%\]$"
)
_COUNTS = re.compile(r"^=+ (.+) in [\d.]+s\b.*=$", re.MULTILINE)
_DETAILS = re.compile(r"^=+ (?:ERRORS|FAILURES) =+$", re.MULTILINE)
_LAST_LINES = 60
PR_SET_CHILD_SUBREAPER = 36  # of Linux's prctl


class Lane:
    """A target of the Makefile that runs in a process of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log = LOGS / f"{name}.log"
        self.seconds = 0.0
        self.failed: list[str] = []
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            ["make", "--no-print-directory", name],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def has_passed(self) -> bool:
        return self._process.returncode == 0

    @property
    def outcome(self) -> str:
        """A line: whether it passed, how long it took, how many tests did what. Below it, the tests that failed."""
        counts = _COUNTS.findall(self.log.read_text())
        verdict = "passed" if self.has_passed else "FAILED"
        line = f"{self.name:14} {verdict} {_clock(self.seconds)}  {''.join(counts[-1:])}"
        return "\n  ".join([line, *dict.fromkeys(self.failed)])

    def details(self) -> str:
        """What it said of its failures, or last."""
        said = self.log.read_text()
        found = _DETAILS.search(said)
        return said[found.start() :] if found else "\n".join(said.splitlines()[-_LAST_LINES:])

    def wait(self) -> None:
        """Waits for its end."""
        self._reader.join()

    def end(self) -> None:
        """Interrupts it with all that it started, as Ctrl-C does, so that pytest stops its servers. Safe to repeat."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("w") as log:
            for line in self._process.stdout:
                log.write(line)
                log.flush()
                if found := _FAILED.search(line.rstrip()):
                    self.failed.append(found["shared"] or found["alone"])
                    print(f"{self.name}: {line.strip()}", flush=True)
        self._process.wait()
        self.seconds = time.monotonic() - self._began
        print(self.outcome, flush=True)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:3}:{int(seconds) % 60:02}"


def main(groups: Sequence[str]) -> int:
    """Runs one group after another. Returns how many parts failed."""
    LOGS.mkdir(parents=True, exist_ok=True)
    _adopt_orphans()
    began = time.monotonic()
    ended: list[Lane] = []
    for group in groups:
        ended += _run_together(group.split(","))
        _end_orphans()
    failed = [lane for lane in ended if not lane.has_passed]
    for lane in failed:
        print(f"\n{lane.name}\n{lane.details()}")
    print("\n" + "\n".join(lane.outcome for lane in ended))
    print(f"{'together':14} {'FAILED' if failed else 'passed'} {_clock(time.monotonic() - began)}", flush=True)
    return len(failed)


def _adopt_orphans() -> None:
    """Makes this process the parent of servers that lose theirs: an interrupted pytest kills its own processes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans() -> None:
    orphans = psutil.Process().children(recursive=True)
    for orphan in orphans:
        with suppress(psutil.NoSuchProcess):
            orphan.terminate()
    for orphan in psutil.wait_procs(orphans, timeout=10)[1]:
        with suppress(psutil.NoSuchProcess):
            orphan.kill()


def _run_together(names: Sequence[str]) -> list[Lane]:
    print(f"Running {', '.join(names)}. What they say is in {LOGS.relative_to(ROOT)}.", flush=True)
    lanes = [Lane(name) for name in names]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: [lane.end() for lane in lanes])
    for lane in lanes:
        lane.wait()
    return lanes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
