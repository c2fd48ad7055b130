"""`make bench`: runs all sections, or the named ones, and prints one table."""

import signal
import sys
from argparse import ArgumentParser
from functools import partial
from types import FrameType
from typing import Any

from bench import (
    accept,
    automations,
    broadcasts,
    deliveries,
    fairness,
    inbound,
    inbox,
    latency,
    live,
    messages,
    moving,
    pages,
    paint,
    pictures,
    rates,
    reads,
    reports,
    scaling,
    segments,
    snapshots,
    sustained,
    waiting,
)
from bench.errors import BenchError
from bench.figures import Row, facts, table
from bench.sites import site
from tests.stack.errors import StackError

# Each module has `run`, and may have COUNTS and SETTINGS for its site. QUICK is the size of a small run: it shows
# whether the section works, but its figures mean little.
SECTIONS: dict[str, Any] = {
    "accept": accept,
    "reads": reads,
    "latency": latency,
    "sustained": sustained,
    "deliveries": deliveries,
    "fairness": fairness,
    "waiting": waiting,
    "runs": automations,
    "messages": messages,
    "rates": rates,
    "inbound": inbound,
    "inbox": inbox,
    "pages": pages,
    "paint": paint,
    "reports": reports,
    "picture": pictures,
    "segments": segments,
    "broadcasts": broadcasts,
    "live": live,
    "moving": moving,
    "scaling": scaling,
    "snapshot": snapshots,
}


def main() -> int:
    """Runs the chosen sections.

    Returns 1 if a benchmark could not be run; missed targets are no error.
    """
    parser = ArgumentParser(prog="python -m bench")
    with_quick = [name for name, section in SECTIONS.items() if hasattr(section, "QUICK")]
    parser.add_argument("section", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help=f"small, to try it: {', '.join(with_quick)}")
    arguments = parser.parse_args()
    sections = with_quick if arguments.quick else list(SECTIONS)
    chosen = arguments.section or sections
    if unknown := set(chosen).difference(sections):
        parser.error(f"there is no {'quick ' if arguments.quick else ''}section {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, _end)
    try:
        print(_run(chosen, arguments.quick))
    except (BenchError, StackError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(names: list[str], is_quick: bool) -> str:
    rows: list[Row] = []
    described = ""
    for name in names:
        section, tell = SECTIONS[name], partial(_tell, name)
        with site(getattr(section, "COUNTS", None), getattr(section, "SETTINGS", None)) as fresh:
            described = described or facts(fresh)
            rows += section.run(fresh, tell, section.QUICK) if is_quick else section.run(fresh, tell)
    return f"{described}\n\n{table(rows)}"


def _tell(section: str, line: str) -> None:
    print(f"{section}: {line}", file=sys.stderr, flush=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(1)  # exits through every `finally`, so that no process stays


if __name__ == "__main__":
    sys.exit(main())
