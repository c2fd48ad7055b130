"""Programs that run beside the benchmark, with their own settings, and carry out its orders."""

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from app import database, logs
from bench.errors import BenchError
from tests.stack.processes import ROOT


class Program:
    """A module that reads orders from standard input, and answers each.

    Orders and answers are JSON documents, one per line.
    """

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
        """Gives an order, and waits for the answer. Raises BenchError if the program ends instead."""
        self.tell(**order)
        return self.answer()

    def tell(self, **order: Any) -> None:
        """Gives an order. Fetch its answer with `answer` before the next order."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Returns the answer to the last order. Raises BenchError if the program ends instead."""
        assert self._process.stdout is not None
        if not (answer := self._process.stdout.readline()):
            raise BenchError(f"{self._module} ended before it had done what it was told to.")
        return json.loads(answer)

    def close(self) -> None:
        """Ends the program. Safe to repeat."""
        if self._process.poll() is None:
            self._process.communicate()


def follow_orders(carry_out: Callable[[dict[str, Any]], Any]) -> None:
    """Reads orders and prints their answers, in a program with the service's settings and domain code."""
    logs.configure("bench")  # logs go to standard error, because standard output carries the answers
    database.connect()
    for line in sys.stdin:
        print(json.dumps(carry_out(json.loads(line))), flush=True)


def copy(columns: str, values: Iterable[tuple[Any, ...]]) -> None:
    """Copies rows into the service's database. `columns`: the table, and its columns in parentheses."""
    lines = io.StringIO("".join("\t".join(map(str, line)) + "\n" for line in values))
    with database.database.connection().cursor() as cursor:
        cursor.copy_expert(f"COPY {columns} FROM STDIN", lines)
