"""The dashboard and the alert rules ask for metrics and labels that there are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from prometheus_client import Counter, Histogram, ProcessCollector
from prometheus_client.metrics import MetricWrapperBase

from app import metrics, process_registry
from app.domain.insight import queues
from tests.docs.pages import PAGES
from tests.stack.processes import ROOT

FOLDER = PAGES.parent / "monitoring"
PAGE = (PAGES.parent / "monitoring.md").read_text()
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "grafana.json").read_text())
RULES = re.findall(
    r'- alert: (\w+)\n +expr: (.+)\n(?: +for: \w+\n)? +labels: \{severity: \w+\}\n +annotations:\n +summary: "(.+)"\n',
    (FOLDER / "alerts.yaml").read_text(),
)
QUERIES = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
EXPRESSIONS = QUERIES + [expression for _, expression, _ in RULES]
# What Prometheus itself adds to every series.
EVERYWHERE = {"instance", "job"}


def series() -> dict[str, set[str]]:
    """The names of all series, each with its labels."""
    found: dict[str, set[str]] = {}
    for figure in vars(metrics).values():
        if isinstance(figure, MetricWrapperBase):
            labels = set(figure._labelnames)
            if isinstance(figure, Counter):
                found[f"{figure._name}_total"] = labels
            elif isinstance(figure, Histogram):
                found |= {f"{figure._name}_{part}": labels for part in ("count", "sum")}
                found[f"{figure._name}_bucket"] = labels | {"le"}
            else:
                found[figure._name] = labels
    process = [sample.name for metric in ProcessCollector(registry=None).collect() for sample in metric.samples]
    return found | {name: set() for name in process}


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:bellhop|http|process)_\w+", expression))


def labels_in(expression: str) -> set[str]:
    lists = re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", expression)
    matched = re.findall(r"(\w+)(?:=~?|!=)\"", expression)
    return {label.strip() for list in lists for label in list.split(",")} | set(matched)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_query_is_of_series_and_labels_that_there_are(expression: str) -> None:
    known = series()
    names = names_in(expression)

    assert names
    assert names - known.keys() == set()
    assert labels_in(expression) - EVERYWHERE <= set().union(*(known[name] for name in names))


def test_every_metric_of_ours_is_on_the_dashboard() -> None:
    shown = set().union(*map(names_in, QUERIES))

    assert [
        figure._name
        for figure in vars(metrics).values()
        if isinstance(figure, MetricWrapperBase) and not any(name.startswith(figure._name) for name in shown)
    ] == []


def test_every_panel_says_what_it_shows_and_has_a_place_of_its_own() -> None:
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]

    assert [panel["title"] for panel in panels if not panel["description"]] == []
    assert len(set(places)) == len(places)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_page_has_every_kind_of_mail_and_who_serves_it() -> None:
    table = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .+ \| (`[\w-]+`(?:, `[\w-]+`)*) \|$", PAGE, re.MULTILINE)
    kinds, served = (re.findall(r"`([\w-]+)`", " ".join(column)) for column in zip(*table, strict=True))

    assert sorted(kinds) == sorted(queues.NAMES)
    assert set(served) <= set(process_registry.TYPES)


def test_every_alert_fires_in_a_story() -> None:
    stories = "".join(story.read_text() for story in (ROOT / "tests" / "alerts").glob("test_*.py"))

    assert {name for name, *_ in RULES} == set(re.findall(r'"(Bellhop\w+)"', stories))


def test_the_page_explains_every_alert() -> None:
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    explained = set(re.findall(r"`(Bellhop\w+)`", table))

    assert {name for name, *_ in RULES} == explained
    assert len(RULES) == (FOLDER / "alerts.yaml").read_text().count("alert:")


def test_the_page_names_the_event_that_a_broken_request_logs() -> None:
    named = re.findall(
        r"^\| `BellhopInternalErrors` .+ Look for `(\w+)` in the logs of `web`\. \|$", PAGE, re.MULTILINE
    )

    assert len(named) == 1
    for edge in ("api/problems.py", "web/errors.py"):
        assert f'_log.error("{named[0]}"' in (ROOT / "app" / edge).read_text()
