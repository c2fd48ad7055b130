"""Programs that run beside the benchmark with settings of their own, and do what they are told to, an order a line."""

import json
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from bench.errors import BenchError
from tests.stack.processes import ROOT


class Program:
    """A module that reads orders from its standard input, a line of JSON each, and answers each with one."""

    def __init__(self, module: str, environment: Mapping[str, str], *arguments: str) -> None:
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, **order: Any) -> Any:
        """Waits for the answer. Raises BenchError if the program ends instead."""
        self.tell(**order)
        return self.answer()

    def tell(self, **order: Any) -> None:
        """Gives the order; the answer must be fetched before the next."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        if not (answer := self._process.stdout.readline()):
            raise BenchError(f"{self._module} ended before it had done what it was told to.")
        return json.loads(answer)

    def close(self) -> None:
        """It ends when there are no more orders. Safe to repeat."""
        if self._process.poll() is None:
            self._process.communicate()
