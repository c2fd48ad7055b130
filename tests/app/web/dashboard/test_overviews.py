"""The overview of a workspace, and that of staff over all of them."""

from __future__ import annotations

import json
import re

import pytest
from flask import Flask

from app import bells, database, process_registry
from app.domain.insight import figures, queues
from app.domain.insight.queues import Queue
from app.domain.insight.trends import WINDOWS
from app.lib import clock
from tests.app.web.counting import MOST_STATEMENTS, counted_statements
from tests.cast import Api
from tests.figures import ago, attempted, counted
from tests.pages import Person

pytestmark = pytest.mark.usefixtures("without_lag")


@pytest.fixture
def history(api: Api) -> str:
    """An endpoint with 40 delivered attempts and 3 that failed, half an hour ago."""
    endpoint_id = api.endpoint()
    attempted(api.workspace_id, endpoint_id, ago(minutes=30), times=40)
    attempted(api.workspace_id, endpoint_id, ago(minutes=30), "status", 503, times=3)
    counted()
    return endpoint_id


def announce(process_type: str, pid: int, **facts: object) -> None:
    said = {"version": "v1.2-3-gabc", "started_at": "2026-11-23T06:00:00+00:00", "rss_bytes": 91_000_000}
    bells.flags().set(f"process:{process_type}:host:{pid}", json.dumps(said | {"facts": facts}))


def test_an_empty_workspace_says_what_to_do_next(owner: Person) -> None:
    page = owner.page("dashboard")

    assert "Nothing has been sent yet" in page
    assert "settings/developers/tokens" in page
    assert page.count('/dashboard/endpoints"') == 2  # in the menu, and in the sentence


@pytest.mark.parametrize("window", WINDOWS)
def test_the_sums_of_a_window_are_shown(owner: Person, history: str, window: str) -> None:
    page = owner.page(f"dashboard?window={window}")

    sums = re.search(r'<ul class="cards" aria-label="Sums of the window">(.*?)</ul>', page, re.DOTALL)
    assert sums
    assert re.findall(r'class="big">([^<]+)<', sums[1])[:3] == ["43", "40", "3"]
    assert "93.0 %" in sums[1]


def test_charts_are_told_in_words_and_as_tables(owner: Person, history: str) -> None:
    page = owner.page("dashboard?window=1h")

    charts = re.findall(r'<svg class="chart".*?</svg>', page, re.DOTALL)
    assert len(charts) == page.count("<summary>As a table</summary>") == 3
    assert all(re.search(r"<desc id=\"[a-z]+-summary\">\w", chart) for chart in charts)
    assert "delivered: highest 40, last 0. failed: highest 3, last 0." in charts[0]
    assert "style=" not in page
    assert len(re.findall(r"<tr><td><time", page)) == 3 * 61


def test_queues_of_the_workspace_are_shown_as_they_are_now(owner: Person, api: Api, history: str) -> None:
    api.post("contacts", {"external_id": "ada"})
    database.rows("UPDATE jobs SET due_at = now() - interval '5 minutes' WHERE due_at IS NOT NULL")

    page = owner.page("dashboard")

    row = re.search(r"<tr><th scope=\"row\" class=\"lead\">Writes.*?</tr>", page, re.DOTALL)
    assert row
    assert re.findall(r'<td class="number">(?:<span class="state warn">)?([^<]+)', row[0]) == ["1", "5 min"]


def test_stopped_endpoints_stand_out_with_what_is_held(owner: Person, api: Api, history: str) -> None:
    database.rows("UPDATE endpoints SET state = 'stopped', stop_reason = 'Too many failures', stopped_at = now()")
    attempted(api.workspace_id, history, ago(minutes=1), None, None, times=2, state="held")

    page = owner.page("dashboard")

    assert "Stopped endpoints" in page
    assert "Too many failures" in page
    assert f"dashboard/endpoints/{history}" in page


def test_a_workspace_sees_nothing_of_another(owner: Person, others: Api, history: str) -> None:
    attempted(others.workspace_id, others.endpoint(), database.now(), "status", 500, times=500)
    counted()

    page = owner.page("dashboard")

    assert "500" not in re.findall(r'class="big">([^<]+)<', page)
    assert '<strong class="big">43</strong>' in page


def test_members_see_nothing_of_the_service(owner: Person, history: str) -> None:
    announce("scheduler", 7, leads=True, passes=[], checks=[])

    page = owner.page("dashboard")

    assert "Processes" not in page
    assert "v1.2-3-gabc" not in page


def test_the_scheduler_leads_and_not_what_runs_in_the_same_process(support: Person) -> None:
    for kind in ("writes", "scheduler"):
        announce(kind, 7, leads=True, passes=[], checks=[])

    assert re.findall(r'<th scope="row">([a-z-]+) <span class="state good">leads', support.page("/dashboard")) == [
        "scheduler"
    ]


def test_a_check_is_wrong_as_soon_as_its_process_has_ceased_to_report(support: Person) -> None:
    checks = [{"name": name, "is_good": True, "text": "1 running"} for name in ("scheduler", "writes")]
    announce("scheduler", 7, leads=True, passes=[], checks=checks)

    page = support.page("/dashboard")

    assert page.count(">wrong</span>") == 1
    assert f"none reported in the last {process_registry.FORGOTTEN_AFTER_SECONDS} seconds" in page


def test_staff_see_all_workspaces_and_the_service(support: Person, others: Api, history: str) -> None:
    queues.note([Queue("writes", 10_001, 90.0)])
    check = {"name": "redis", "is_good": False, "text": "Redis is <b>away</b>"}
    made = {"every_seconds": 60, "made_at": clock.now().isoformat(), "ms": 12, "found": 3}
    passes = [{"name": "usage", "error": None, **made}, {"name": "old_figures", "error": "RuntimeError", **made}]
    announce("scheduler", 7, leads=True, passes=passes, checks=[check])
    announce("scheduler", 8, leads=False)
    announce("writes", 9)
    bells.flags().set("process:web:host:10", b"1")

    page = support.page("/dashboard")

    assert '<strong class="big">43</strong>' in page
    assert page.count("v1.2-3-gabc") == 3
    assert page.count(">leads<") == 1
    assert "As the scheduler counted them in the minute of" in page
    assert "10,000+" in page
    assert "91.0 MB" in page
    assert "Redis is <b>away</b>" in page  # unescaped by the test
    assert "&lt;b&gt;" in support.get("/dashboard").text
    assert page.index("old figures") < page.index(">usage<")
    assert "RuntimeError" in page


def test_staff_see_that_nothing_runs(support: Person) -> None:
    page = support.page("/dashboard")

    assert "No process has reported" in page
    assert "No scheduler leads." in page
    assert "No scheduler has counted them yet." in page


def test_the_page_is_there_without_redis(support: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "flags", lambda: bells.brokers.quick_client("redis://127.0.0.1:1/0"))

    assert "Redis cannot be reached" in support.page("/dashboard")


@pytest.mark.parametrize("window", ["", "2h", "%00", "1h'"])
def test_a_window_that_there_is_not_is_the_usual_one(owner: Person, history: str, window: str) -> None:
    assert re.search(r'aria-current="true">24 hours', owner.page(f"dashboard?window={window}"))


@pytest.mark.parametrize("path", ["dashboard", "/dashboard"])
def test_the_page_takes_few_statements(app: Flask, support: Person, history: str, path: str) -> None:
    support.visit()
    with counted_statements() as statements:
        support.page(path)

    assert len(statements) <= MOST_STATEMENTS


def test_figures_are_those_of_the_rollups(owner: Person, api: Api, history: str) -> None:
    attempted(api.workspace_id, history, database.now(), times=5)

    before, _ = owner.page("dashboard"), figures.count_outcomes()

    assert '<strong class="big">43</strong>' in before
    assert '<strong class="big">48</strong>' in owner.page("dashboard")
