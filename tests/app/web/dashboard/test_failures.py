"""The page of failures: groups, and the ways from there."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlencode, urlsplit
from zoneinfo import ZoneInfo

import pytest

from app.database import now, rows
from app.models.endpoints import Endpoint
from tests.app.web.counting import MOST_STATEMENTS, counted_statements
from tests.automations import make_automation
from tests.cast import Api
from tests.figures import ago, attempted, counted, failed_job, failed_run
from tests.pages import Person
from tests.sending import make

pytestmark = pytest.mark.usefixtures("without_lag")


@pytest.fixture
def endpoint_id(api: Api) -> str:
    """An endpoint with three deliveries that failed with 503, and one that is held after it."""
    endpoint_id = api.endpoint("https://shop.example/<b>hooks</b>")
    attempted(api.workspace_id, endpoint_id, ago(minutes=30), "status", 503, times=3)
    attempted(api.workspace_id, endpoint_id, ago(minutes=30), "status", 503, state="held")
    counted()
    return endpoint_id


def links(page: str, part: str) -> list[str]:
    return [link for link in re.findall(r'href="([^"]+)"', page) if part in link]


def asked(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).query)


def test_no_failures_is_good_news(owner: Person) -> None:
    assert "Nothing has failed" in owner.page("dashboard/failures")


def test_a_group_leads_to_what_is_in_it_and_to_its_replay(owner: Person, endpoint_id: str) -> None:
    page = owner.page("dashboard/failures")

    filters = {"endpoint_id": [endpoint_id], "error_code": ["status"], "status_code": ["503"]}
    failed, held = [asked(link) for link in links(page, "/dashboard/deliveries?")]
    [replay] = [asked(link) for link in links(page, "/dashboard/replays/new?")]
    assert failed == filters | {"status": ["failed"]}
    assert replay == filters | {"status": ["failed", "held"]}
    assert held == filters | {"status": ["held"]}
    assert "Answered 503 Service Unavailable" in page
    assert f"dashboard/endpoints/{endpoint_id}" in page


def test_what_a_stop_holds_untried_is_counted_apart_and_can_be_replayed(owner: Person, api: Api) -> None:
    endpoint_id = api.endpoint()
    attempted(api.workspace_id, endpoint_id, ago(minutes=30), "gone", 410)
    counted()
    make(Endpoint.get_by_id(endpoint_id), 3, "held")
    rows("UPDATE deliveries SET status = 'delivered' WHERE status = 'failed'")

    page = owner.page("dashboard/failures")

    assert "3 more untried" in page
    [untried] = [asked(link) for link in links(page, "/dashboard/deliveries?") if "held" in link]
    assert untried == {"endpoint_id": [endpoint_id], "status": ["held"]}
    [replay] = links(page, "/dashboard/replays/new?")
    assert "3 more are held without a cause" in owner.page(html.unescape(replay))
    [group] = owner.get("dashboard/failures?format=json").json
    assert (group["failed_now"], group["held_now"], group["untried_now"]) == (0, 0, 3)


def test_what_failed_is_escaped(owner: Person, endpoint_id: str) -> None:
    answer = owner.get("dashboard/failures")

    assert "<b>hooks" not in answer.text
    assert "hooks" in answer.text


def test_an_agent_may_not_replay_in_bulk(agent: Person, endpoint_id: str) -> None:
    assert links(agent.page("dashboard/failures"), "/replays/new?") == []


def test_failed_writes_and_runs_are_shown_by_their_names(owner: Person, api: Api) -> None:
    automation_id = make_automation(api.workspace_id)
    failed_job(api.workspace_id, "contacts.update", now())
    failed_run(api.workspace_id, automation_id, now())
    counted()

    page = owner.page("dashboard/failures")

    [jobs] = [asked(link) for link in links(page, "/dashboard/jobs?")]
    [runs] = [asked(link) for link in links(page, "/dashboard/runs?")]
    assert jobs == {"kind": ["contacts.update"], "status": ["failed"]}
    assert runs == {"automation_id": [automation_id], "status": ["failed"], "failure": ["template"]}
    assert "Not found" in page
    assert "Welcome" in page
    assert "contacts.update" in owner.page("dashboard/failures?kind=job")
    assert "contacts.update" not in owner.page("dashboard/failures?kind=run")


@pytest.mark.parametrize(
    "query", ["window=1h", "window=30d", "order=newest", "kind=delivery", "kind=x", "order=%00", "window=x"]
)
def test_every_choice_shows_the_group(owner: Person, endpoint_id: str, query: str) -> None:
    assert "Answered 503" in owner.page(f"dashboard/failures?{query}")


def test_choices_keep_each_other(owner: Person, endpoint_id: str) -> None:
    page = owner.page("dashboard/failures?window=7d&order=newest&kind=delivery")

    assert any(
        asked(link) == {"order": ["newest"], "kind": ["delivery"], "window": ["1h"]} for link in links(page, "?")
    )
    assert any(asked(link) == {"window": ["7d"], "kind": ["delivery"]} for link in links(page, "?"))


def test_staff_see_the_groups_of_all_workspaces(support: Person, others: Api, endpoint_id: str) -> None:
    attempted(others.workspace_id, others.endpoint(), now(), "timeout", None)
    counted()

    page = support.page("/dashboard/failures")

    assert page.index("No answer in time") < page.index("Answered 503")
    assert f"/workspaces/{others.workspace_id}/dashboard/failures" in page
    assert len(links(page, "/replays/new?")) == 2


def test_members_see_only_their_own(stranger: Person, owner: Person, endpoint_id: str) -> None:
    assert stranger.get("dashboard/failures").status_code == 404
    assert owner.get("/dashboard/failures").status_code == 404


def test_the_groups_are_files_too(owner: Person, endpoint_id: str) -> None:
    [group] = owner.get("dashboard/failures?format=json").json
    [row] = csv.DictReader(io.StringIO(owner.get("dashboard/failures?format=csv").text))

    assert (group["subject"], group["code"], group["status"], group["failed"]) == (endpoint_id, "status", 503, 4)
    assert (group["failed_now"], group["held_now"]) == (3, 1)
    assert group.keys() == row.keys()
    assert row["subject"] == endpoint_id


def test_the_page_takes_few_statements(support: Person, api: Api, endpoint_id: str) -> None:
    for status in range(500, 530):
        attempted(api.workspace_id, endpoint_id, now(), "status", status)
    counted()
    support.visit()
    with counted_statements() as statements:
        support.page("dashboard/failures")
        support.page("/dashboard/failures")

    assert len(statements) <= 2 * MOST_STATEMENTS


def counted_long_ago() -> None:
    """Counts what has failed, as if it had been 27 hours earlier; older attempts are never counted anew."""
    counted()
    for table, names in (
        ("failure_groups", ("first_seen_at", "last_seen_at")),
        ("failure_minutes", ("starts_at",)),
        ("failure_hours", ("starts_at",)),
    ):
        rows(f"UPDATE {table} SET " + ", ".join(f"{name} = {name} - interval '27 hours'" for name in names))


def test_a_range_of_ones_own_shows_an_outage_that_the_day_no_longer_does(owner: Person, api: Api) -> None:
    endpoint_id = api.endpoint()
    attempted(api.workspace_id, endpoint_id, ago(hours=5), "refused", None, times=4)
    attempted(api.workspace_id, endpoint_id, ago(hours=1), "timeout", None, times=2)
    counted_long_ago()
    times = {"since": f"{ago(hours=33):%Y-%m-%dT%H:%M}", "until": f"{ago(hours=31):%Y-%m-%dT%H:%M}"}

    page = owner.page(f"dashboard/failures?{urlencode(times)}")

    assert "No connection" in page
    assert "No answer in time" not in page
    assert '<td class="number">4</td>' in page
    assert "ongoing" not in page
    assert f'data-moment="{times["since"]}:00.000Z"' in page
    for name, value in times.items():
        assert asked(links(page, "order=newest")[0])[name] == [value]
    assert "since" not in asked(links(page, "window=7d")[0])


def test_an_empty_range_says_when_something_failed_last_and_leads_there(owner: Person, api: Api) -> None:
    attempted(api.workspace_id, api.endpoint(), ago(hours=5), "refused", None, times=4)
    counted_long_ago()

    page = owner.page("dashboard/failures?kind=delivery")

    assert "Nothing has failed" in page
    [there] = [link for link in links(page, "since=") if "until=" in link and "preset=" not in link]
    assert "No connection" in owner.page(there)
    assert "Something failed last" not in owner.page("dashboard/failures?kind=run")


def test_a_range_has_the_zone_of_its_times_or_is_of_utc(owner: Person, api: Api) -> None:
    attempted(api.workspace_id, api.endpoint(), ago(hours=5), "refused", None)
    counted_long_ago()
    local = ago(hours=33).astimezone(ZoneInfo("Pacific/Kiritimati"))
    times = {"since": local.isoformat(), "until": (local + timedelta(hours=2)).isoformat()}
    without = {name: text.removesuffix("+14:00") for name, text in times.items()}

    assert "No connection" in owner.page(f"dashboard/failures?{urlencode(times)}")
    assert "Nothing has failed" in owner.page(f"dashboard/failures?{urlencode(without)}")


@pytest.mark.parametrize("query", ["since=x", "until=yesterday", "since=2026-02-01T00:00&until=2026-01-01T00:00"])
def test_a_range_that_makes_no_sense_is_left_out_and_the_page_says_so(
    owner: Person, endpoint_id: str, query: str
) -> None:
    page = owner.page(f"dashboard/failures?{query}")

    assert "left out" in page
    assert "Answered 503" in page


def test_a_range_of_all_workspaces_is_for_staff(owner: Person, support: Person, api: Api) -> None:
    attempted(api.workspace_id, api.endpoint(), ago(hours=5), "refused", None)
    counted_long_ago()
    times = urlencode({"since": f"{ago(days=40):%Y-%m-%dT%H:%M}"})

    page = support.page(f"/dashboard/failures?{times}")

    assert "No connection" in page
    assert asked(links(page, f"{api.workspace_id}/dashboard/failures")[0])["since"]
    assert owner.get(f"/dashboard/failures?{times}").status_code == 404


def test_a_range_takes_few_statements(owner: Person, endpoint_id: str) -> None:
    times = urlencode({"since": f"{ago(days=2):%Y-%m-%dT%H:%M}"})
    with counted_statements() as seen:
        assert "Answered 503" in owner.page(f"dashboard/failures?{times}")
    assert len(seen) <= MOST_STATEMENTS
