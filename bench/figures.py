"""Figures computed from measurements, and the table that shows them."""

import os
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from bench.sites import Site
from bench.statements import Statements

PACKAGES = ("Flask", "gunicorn", "dramatiq", "peewee", "psycopg2-binary", "httptools")


@dataclass(frozen=True)
class Row:
    """One line of the table. `met` is None if there is no target."""

    section: str
    what: str
    figure: str
    target: str = ""
    met: bool | None = None


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def spread(seconds: Sequence[float]) -> str:
    """Describes durations by their median, their maximum and their number."""
    if not seconds:
        return "none"
    return f"p50 {milliseconds(percentile(seconds, 0.5))}, worst {milliseconds(max(seconds))}, of {len(seconds)}"


def timed(do: Callable[[], object]) -> float:
    """Calls `do`, and returns how many seconds it took."""
    began = time.monotonic()
    do()
    return time.monotonic() - began


def at_most(section: str, what: str, value: float, target: float, unit: str = "", places: int = 1) -> Row:
    return Row(section, what, f"{value:.{places}f}{unit}", f"at most {target:g}{unit}", value <= target)


def at_least(section: str, what: str, value: float, target: float, unit: str = "") -> Row:
    return Row(section, what, f"{value:.0f}{unit}", f"at least {target:g}{unit}", value >= target)


def growth(section: str, item: str, before: tuple[int, int], after: tuple[int, int], number: int) -> list[Row]:
    """Describes the bytes written per item between two results of `costs.written`."""
    wal, kept = ((now - then) / number / 1000 for then, now in zip(before, after, strict=True))
    return [
        Row(section, f"WAL of a {item}", f"{wal:.1f} kB"),
        Row(section, f"growth of tables and indexes by a {item}", f"{kept:.1f} kB"),
    ]


def breakdown(title: str, statements: Statements, writes: int, most: int = 15) -> str:
    """Lists the most frequent kinds of statement, per write."""
    by_process = ", ".join(f"{kind} {number / writes:.2f}" for kind, number in statements.by_process().most_common())
    lines = [f"{title}: {statements.total / writes:.2f} statements for each of {writes:,} writes ({by_process})"]
    for (process, statement), number in statements.counts.most_common(most):
        lines.append(f"  {number / writes:7.3f}  {process:<10}  {statement[:110]}")
    return "\n".join(lines)


def facts(site: Site) -> str:
    """Describes the machine and the versions that the figures depend on."""
    server = site.query("SHOW server_version")[0][0]
    fsync = site.query("SHOW fsync")[0][0]
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}, load {load}\n"
        f"Python {platform.python_version()}, PostgreSQL {server} (fsync {fsync}), {packages}"
    )


def table(rows: Sequence[Row]) -> str:
    verdicts = {None: "", True: "met", False: "MISSED"}
    cells = [("section", "measure", "figure", "target", "")]
    cells += [(row.section, row.what, row.figure, row.target, verdicts[row.met]) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    aligned = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    aligned.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in aligned)
