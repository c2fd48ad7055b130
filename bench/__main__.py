"""`make bench`: runs all sections, or the named ones, and prints one table."""

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from types import FrameType

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
from bench.sites import Site, site
from tests.stack.errors import StackError

SECTIONS = {
    "accept": accept.run,
    "reads": reads.run,
    "latency": latency.run,
    "sustained": sustained.run,
    "deliveries": deliveries.run,
    "fairness": fairness.run,
    "waiting": waiting.run,
    "runs": automations.run,
    "messages": messages.run,
    "rates": rates.run,
    "inbound": inbound.run,
    "inbox": inbox.run,
    "pages": pages.run,
    "paint": paint.run,
    "reports": reports.run,
    "picture": pictures.run,
    "segments": segments.run,
    "broadcasts": broadcasts.run,
    "live": live.run,
    "moving": moving.run,
    "scaling": scaling.run,
    "snapshot": snapshots.run,
}
# Sections with a small variant, which only shows whether they work.
QUICK = {"fairness": fairness.quick, "waiting": waiting.quick, "runs": automations.quick}
QUICK |= {"messages": messages.quick, "pages": pages.quick, "live": live.quick, "rates": rates.quick}
QUICK |= {"inbound": inbound.quick, "inbox": inbox.quick, "reports": reports.quick}
QUICK |= {"picture": pictures.quick, "segments": segments.quick}
QUICK |= {"broadcasts": broadcasts.quick, "moving": moving.quick, "snapshot": snapshots.quick}
Run = Callable[[Site, Callable[[str], None]], list[Row]]
COUNTS = {"deliveries": deliveries.COUNTS, "waiting": waiting.COUNTS, "runs": automations.COUNTS}
COUNTS |= {"rates": rates.COUNTS, "scaling": scaling.COUNTS}
SETTINGS = {"messages": messages.SETTINGS, "waiting": waiting.SETTINGS}
SETTINGS |= {"rates": rates.SETTINGS, "inbound": inbound.SETTINGS, "inbox": inbox.SETTINGS}
SETTINGS |= {"broadcasts": broadcasts.SETTINGS, "moving": moving.SETTINGS}


def main() -> int:
    """Runs the chosen sections.

    Returns 1 if a benchmark could not be run; missed targets are no error.
    """
    parser = ArgumentParser(prog="python -m bench")
    parser.add_argument("section", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help=f"small, to try it: {', '.join(QUICK)}")
    arguments = parser.parse_args()
    sections = QUICK if arguments.quick else SECTIONS
    chosen = arguments.section or list(sections)
    if unknown := set(chosen) - sections.keys():
        parser.error(f"there is no {'quick ' if arguments.quick else ''}section {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, _end)
    try:
        print(_run({name: sections[name] for name in chosen}))
    except (BenchError, StackError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(chosen: dict[str, Run]) -> str:
    rows: list[Row] = []
    described = ""
    for name, section in chosen.items():
        with site(COUNTS.get(name), SETTINGS.get(name)) as fresh:
            described = described or facts(fresh)
            rows += section(fresh, partial(_tell, name))
    return f"{described}\n\n{table(rows)}"


def _tell(section: str, line: str) -> None:
    print(f"{section}: {line}", file=sys.stderr, flush=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(1)  # exits through every `finally`, so that no process stays


if __name__ == "__main__":
    sys.exit(main())
