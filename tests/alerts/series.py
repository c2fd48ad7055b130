"""Series for promtool: ordinary hours, then a fault, each continued from what was seen of it."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from tests.docs.pages import PAGES

RULES = PAGES.parent / "monitoring" / "alerts.yaml"
# What the rules ask for.
NAMES = frozenset(re.findall(r"\b(?:bellhop|http)_\w+", RULES.read_text()))
EVERY_SECONDS, A_MINUTE = 15, 4
# Rules look back an hour at most, so the second hour is one in which each could fire.
ORDINARY_MINUTES = 120
_ORDINARY = ORDINARY_MINUTES * A_MINUTE
# What is never found, so that promtool says what it got.
_WRONG = {"labels": "none", "value": 0}

# The values of series by their names with labels, as promtool writes them.
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Seen:
    """What a service showed at two moments."""

    first: Figures
    last: Figures
    seconds: float

    def step(self, series: str) -> float:
        """How much a counter grew from one scrape of Prometheus to the next, or a gauge that grows steadily."""
        grown = (self.last[series] - self.first.get(series, 0.0)) / self.seconds
        # An age grows by a second each second, if nothing is done. What grows more slowly only varies.
        return grown * EVERY_SECONDS if _is_counter(series) or grown > 0.5 else 0.0


def firing(ordinary: Seen, fault: Seen, minutes: int) -> tuple[set[str], set[str]]:
    """The alerts that fire at any time of the ordinary hours, and of the fault, which follows for some minutes."""
    every = {series: _values(series, ordinary, fault, minutes * A_MINUTE) for series in {**ordinary.last, **fault.last}}
    last = ORDINARY_MINUTES - 1
    before, after = _fired(every, {last: last, ORDINARY_MINUTES + minutes: minutes})
    return before, after


def _is_counter(series: str) -> bool:
    return re.search(r"_(total|count|sum|bucket)\{", series) is not None


def _values(series: str, ordinary: Seen, fault: Seen, scrapes: int) -> str:
    """The series in promtool's notation: `a+bxn` are n + 1 values from a on, `_xn` are n missing ones."""
    before, begin = f"_x{_ORDINARY}", fault.last.get(series, 0.0)
    if series in ordinary.last:
        step = ordinary.step(series) if _is_counter(series) else 0.0
        before = f"{ordinary.last[series]:f}+{step:f}x{_ORDINARY - 1}"
        if _is_counter(series):  # goes on from where it has got to by then
            begin = ordinary.last[series] + step * _ORDINARY
    if series not in fault.last:
        return f"{before} _x{scrapes}"
    return f"{before} {begin:f}+{fault.step(series):f}x{scrapes - 1}"


def _fired(every: Mapping[str, str], windows: Mapping[int, int]) -> list[set[str]]:
    """The alerts that fired before each of these minutes, within that many minutes."""
    asked = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[%sm]))'
    test = {
        "interval": f"{EVERY_SECONDS}s",
        "input_series": [{"series": series, "values": values} for series, values in every.items()],
        "promql_expr_test": [
            {"expr": asked % minutes, "eval_time": f"{minute}m", "exp_samples": [_WRONG]}
            for minute, minutes in windows.items()
        ],
    }
    document = {"rule_files": [str(RULES)], "evaluation_interval": f"{EVERY_SECONDS}s", "tests": [test]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:  # JSON is YAML
        json.dump(document, file)
        file.flush()
        done = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True, check=False)
    found = re.findall(r"^\s*got:(.*)$", done.stdout + done.stderr, re.MULTILINE)
    assert len(found) == len(windows), done.stdout + done.stderr
    return [set(re.findall(r'alertname="(\w+)"', each)) for each in found]
