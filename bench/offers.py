"""Offers: runs of the load generator."""

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from bench.errors import BenchError
from bench.load import Plan
from tests.stack.processes import ROOT


@dataclass(frozen=True)
class Accepted:
    """The accepted requests of an offer; all times are Unix times."""

    began: float
    ended: float
    at: dict[int, float]  # by the contact's number

    @property
    def per_second(self) -> float:
        return sum(at <= self.ended for at in self.at.values()) / (self.ended - self.began)


class Offer:
    """A running load generator."""

    def __init__(self, plan: Plan) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(plan.to_json().encode() + b"\n")  # too long for an argument

    def note_received(self) -> None:
        """Makes room in the window for one more write."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b".")

    def accepted(self) -> Accepted:
        """Waits for the end of the run. Raises BenchError if a request was not accepted."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        output = self._process.stdout.read()
        if self._process.wait() != 0:
            raise BenchError(f"The load generator gave up: {self._process.stderr.read().decode().strip()}")
        said = json.loads(output)
        return Accepted(said["began"], said["ended"], {number: at for number, _, at in said["accepted"]})


def offer(plan: Plan) -> Accepted:
    """Runs the plan and waits for its end. Raises BenchError if a request was not accepted."""
    return Offer(plan).accepted()
