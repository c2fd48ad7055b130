"""Endpoints on the dashboard."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from app import database
from app.lib import clock
from app.outbound import answered
from tests.cast import Api, one, sweep
from tests.figures import ago, attempted, counted
from tests.logs import MOST_STATEMENTS, NASTY, RTL, attempt, delivery, set_state
from tests.pages import Person

LIST = "dashboard/endpoints"


def test_without_endpoints_the_list_says_what_to_do(owner: Person) -> None:
    assert "Create one" in owner.page(LIST)


def many(api: Api, number: int) -> None:
    database.rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, secret, consecutive_failures)"
        " SELECT 'whe_01' || lpad(n::text, 24, '0'), %s, 'https://shop-' || n || '.example/hooks', '{*}', 'x', n %% 2"
        " FROM generate_series(1, %s) AS n",
        (api.workspace_id, number),
    )


def test_a_thousand_endpoints_are_paged_and_found_by_a_part_of_the_address(api: Api, owner: Person) -> None:
    many(api, 1_000)

    shown = owner.page(LIST)

    assert "1,000 endpoints" in shown
    assert shown.count("/dashboard/endpoints/whe_") == 50
    assert "1 endpoint" in owner.page(f"{LIST}?q=shop-777.")
    assert "500 endpoints" in owner.page(f"{LIST}?state=failing")
    assert "No endpoint matches" in owner.page(f"{LIST}?q=%25_%25")
    assert len(json.loads(owner.get(f"{LIST}?format=json").text)) == 1_000


def test_an_endpoint_shows_its_state_and_what_it_has_not_got(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(503, b"", 5))

    shown = owner.page(f"{LIST}/{endpoint_id}")

    assert "The last 1 attempt failed; a success resets that." in shown
    assert '"state bad">failing</span>' in owner.page(LIST)
    assert ">active</span>" not in owner.page(LIST)
    database.rows("UPDATE endpoints SET consecutive_failures = 0")
    assert "No attempt has failed since the last success, or since the endpoint was enabled." in owner.page(
        f"{LIST}/{endpoint_id}"
    )
    assert f"deliveries/{delivery_id}" in shown
    assert "1 </span> waiting, 1" in " ".join(shown.split())


def test_an_endpoint_that_is_probed_says_when_it_is_tried_next(api: Api, owner: Person) -> None:
    endpoint_id = api.endpoint()
    later = clock.now() + timedelta(minutes=1)
    database.rows("UPDATE endpoints SET probe_at = %s, consecutive_failures = 9", (later,))

    shown = owner.page(f"{LIST}/{endpoint_id}")

    assert "9 attempts in a row failed" in shown
    assert "Attempts go out one at a time" in shown
    assert "failing" in owner.page(LIST)


def stopped(api: Api) -> tuple[str, str]:
    """An endpoint that has stopped, and a delivery that it holds."""
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(410, b"", 5))
    sweep(endpoint_id)
    set_state(delivery_id, status="held")
    return endpoint_id, delivery_id


@pytest.mark.parametrize(("fields", "status"), [({"release_held": "true"}, "pending"), ({}, "held")])
def test_a_stopped_endpoint_is_enabled_with_or_without_release(
    api: Api, owner: Person, fields: dict[str, str], status: str
) -> None:
    endpoint_id, _ = stopped(api)
    assert "The receiver answered 410 Gone." in owner.page(f"{LIST}/{endpoint_id}")

    answer = owner.post(f"{LIST}/{endpoint_id}/enable", fields)
    if fields:
        assert "Releasing deliveries" in owner.page(answer.location)
    sweep(endpoint_id)

    assert "enabled" in owner.page(f"{LIST}/{endpoint_id}") or answer.status_code == 303
    assert one("SELECT state FROM endpoints") == "active"
    assert one("SELECT status FROM deliveries") == status


def test_what_an_active_endpoint_still_holds_can_be_released(api: Api, owner: Person) -> None:
    endpoint_id, _ = stopped(api)
    owner.post(f"{LIST}/{endpoint_id}/enable")

    assert "Release its held deliveries" in owner.page(f"{LIST}/{endpoint_id}")


def test_an_agent_may_look_but_not_enable(api: Api, agent: Person) -> None:
    endpoint_id, _ = stopped(api)

    shown = agent.page(f"{LIST}/{endpoint_id}")

    assert "Enable it" not in shown
    assert agent.post(f"{LIST}/{endpoint_id}/enable").status_code == 403


def test_support_staff_enable_only_during_a_visit(api: Api, support: Person) -> None:
    endpoint_id, _ = stopped(api)

    assert support.post(f"{LIST}/{endpoint_id}/enable").status_code == 403
    support.visit()
    assert support.post(f"{LIST}/{endpoint_id}/enable").status_code == 303
    assert one("SELECT actor_type FROM audit_entries WHERE action = 'endpoints.enable'") == "support"


def test_another_workspace_sees_nothing(api: Api, stranger: Person, others: Api) -> None:
    endpoint_id = api.endpoint()
    theirs = f"/workspaces/{others.workspace_id}/{LIST}"

    assert stranger.get(f"{LIST}/{endpoint_id}").status_code == 404
    assert stranger.get(f"{theirs}/{endpoint_id}").status_code == 404
    assert endpoint_id not in stranger.page(f"{theirs}?q=shop")
    assert stranger.post(f"{theirs}/{endpoint_id}/enable").status_code == 404


def test_what_people_entered_is_escaped(api: Api, owner: Person) -> None:
    endpoint_id = api.endpoint()
    database.rows("UPDATE endpoints SET description = %s, stop_reason = %s, state = 'stopped'", (NASTY + RTL, NASTY))

    for path in (LIST, f"{LIST}/{endpoint_id}"):
        assert "<script>alert" not in owner.get(path).text
        assert NASTY + RTL in owner.page(path)


def test_a_deleted_endpoint_is_not_there(api: Api, owner: Person) -> None:
    endpoint_id = api.endpoint()
    api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))

    assert owner.get(f"{LIST}/{endpoint_id}").status_code == 404


@pytest.mark.parametrize("given", ["x", "whe_0", "%00"])
def test_what_is_no_endpoint_is_not_there(owner: Person, given: str) -> None:
    assert owner.get(f"{LIST}/{given}").status_code == 404


def test_pages_take_few_statements(api: Api, support: Person, statements: list[str]) -> None:
    endpoint_id, _ = stopped(api)
    many(api, 100)
    support.visit()

    for path in (LIST, f"{LIST}?q=shop&state=active", f"{LIST}/{endpoint_id}"):
        support.page(path)
        statements.clear()
        support.page(path)
        assert len(statements) <= MOST_STATEMENTS, statements


def test_success_and_latency_are_shown_over_time(api: Api, owner: Person) -> None:
    endpoint_id, quiet_id = api.endpoint(), api.endpoint("https://quiet.example/hooks")
    attempted(api.workspace_id, endpoint_id, ago(hours=2), times=3, duration_ms=40)
    attempted(api.workspace_id, endpoint_id, ago(hours=2), "status", 503, state="failed")
    counted()

    shown = owner.page(f"{LIST}/{endpoint_id}")

    assert "4 attempts in 24 hours: 75.0 % delivered. Half of the answers took at most" in shown
    assert "<svg" in shown
    assert "No attempt in 1 hour" in owner.page(f"{LIST}/{endpoint_id}?window=1h")
    assert "No attempt in 24 hours" in owner.page(f"{LIST}/{quiet_id}")
    assert "75.0 %" in owner.page(LIST)


def test_nothing_says_how_long_answers_take_where_nothing_was_answered(api: Api, owner: Person) -> None:
    endpoint_id = api.endpoint()
    attempted(api.workspace_id, endpoint_id, ago(hours=2), "timeout", None, times=3, duration_ms=15_000)
    counted()

    shown, overview = owner.page(f"{LIST}/{endpoint_id}"), owner.page("dashboard")

    assert "3 attempts in 24 hours: 0.0 % delivered. None was answered." in shown
    assert "half of the answers: none." in shown
    assert "nothing was answered" in overview
