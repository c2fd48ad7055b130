"""`make bench`: runs the sections, all or those that are named, and prints one table."""

import signal
import sys
from argparse import ArgumentParser
from functools import partial
from types import FrameType

from bench import accept, deliveries, latency, sustained
from bench.errors import BenchError
from bench.figures import Row, facts, table
from bench.sites import site
from tests.stack.errors import StackError

SECTIONS = {"accept": accept.run, "latency": latency.run, "sustained": sustained.run, "deliveries": deliveries.run}
COUNTS = {"deliveries": deliveries.COUNTS}


def main() -> int:
    """1 if a benchmark could not be run; a missed target is no error."""
    parser = ArgumentParser(prog="python -m bench")
    parser.add_argument("section", nargs="*", help=", ".join(SECTIONS))
    chosen = parser.parse_args().section or list(SECTIONS)
    if unknown := set(chosen) - SECTIONS.keys():
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, _end)
    try:
        print(_run(chosen))
    except (BenchError, StackError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(chosen: list[str]) -> str:
    rows: list[Row] = []
    described = ""
    for name in chosen:
        with site(COUNTS.get(name)) as fresh:
            described = described or facts(fresh)
            rows += SECTIONS[name](fresh, partial(_tell, name))
    return f"{described}\n\n{table(rows)}"


def _tell(section: str, line: str) -> None:
    print(f"{section}: {line}", file=sys.stderr, flush=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(1)  # by way of every `finally`, so that no process stays


if __name__ == "__main__":
    sys.exit(main())
