"""Replays on pages: the preview, the list, one replay and control over it."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest

from app import database
from app.lib import clock, ids
from app.lib.json import timestamp
from app.models.endpoints import Endpoint
from app.web.dashboard import endpoint_choices
from tests.cast import Api, all_of, one, replay
from tests.logs import MOST_STATEMENTS, NASTY
from tests.pages import Person
from tests.sending import make, set_state

FAILED = {"status": "failed"}


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return Endpoint.get_by_id(api.endpoint())


def begun(person: Person, **fields: Any) -> str:
    """The identifier of a replay of what has failed, begun on the page and worked on."""
    answer = person.post("dashboard/replays", FAILED | fields)
    assert answer.status_code == 303, answer.text
    replay_id = answer.location.rpartition("/")[2]
    replay(replay_id)
    return str(replay_id)


def many(workspace_id: str, number: int) -> None:
    """So many endpoints more."""
    made = [ids.new("whe") for _ in range(number)]
    database.rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, state, secret)"
        " SELECT id, %s, 'https://shop.example/' || id, '{*}', 'active', 'sealed' FROM unnest(%s) AS id",
        (workspace_id, made),
    )


def state_of(replay_id: str) -> str:
    return str(one("SELECT state FROM replays WHERE id = %s", replay_id))


# The preview


def test_without_a_filter_nothing_is_counted_and_the_page_says_what_to_do(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 1)

    shown = owner.page("dashboard/replays/new")

    assert "Choose what to replay" in shown
    assert "Would go out" not in shown


def test_the_preview_counts_exactly_shows_a_sample_and_says_what_is_left_out_and_why(
    api: Api, owner: Person, endpoint: Endpoint
) -> None:
    made = make(endpoint, 12, last_error_code="timeout", last_error="No answer within 10 seconds.")
    make(endpoint, 3, last_error_code="refused")
    make(endpoint, 2, body=False)
    stopped = Endpoint.get_by_id(api.endpoint("https://shop.example/stopped"))
    make(stopped, 4)
    set_state(stopped, "stopped")

    shown = owner.page("dashboard/replays/new?status=failed")

    assert re.search(r"Would go out</strong><span class=\"big\">15<", shown)
    assert re.search(r"May arrive twice</strong><span class=\"big\">12<", shown)
    assert re.search(r"Its endpoint is stopped. Enable that first.</td><td class=\"number\">4<", shown)
    assert re.search(r"Its body is no longer kept[^<]*</td><td class=\"number\">2<", shown)
    assert [id for id in made if f"deliveries/{id}" in shown] == made[:10]
    assert re.search(r'name="canary"[^>]* checked', shown)
    assert "Replay 15 deliveries" in shown


def test_a_cause_says_how_many_more_are_held_untried_and_leads_to_them(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 2, last_error_code="timeout")
    make(endpoint, 3, "held", last_error_code="timeout")
    make(endpoint, 1, "held", last_error_code="reset")
    make(endpoint, 4, "held")

    shown = owner.page(f"dashboard/replays/new?endpoint_id={endpoint.id}&error_code=timeout")

    assert re.search(r"Would go out</strong><span class=\"big\">5<", shown)
    found = re.search(r'4 more are held without a cause.*?href="([^"]+)"', shown)
    assert found is not None
    assert re.search(r"Would go out</strong><span class=\"big\">10<", owner.page(found[1]))
    assert "without a cause" not in owner.page("dashboard/replays/new?error_code=timeout&status=failed")


def test_a_stopped_endpoint_is_enabled_and_replayed_in_one_step(
    api: Api, owner: Person, agent: Person, endpoint: Endpoint
) -> None:
    held = make(endpoint, 3, "held")
    make(endpoint, 2, body=False)
    set_state(endpoint, "stopped")
    other = Endpoint.get_by_id(api.endpoint("https://shop.example/other"))
    set_state(other, "stopped")
    assert "Enable and replay …" in owner.page(f"dashboard/endpoints/{endpoint.id}")
    assert "Enable and replay …" in owner.page(f"dashboard/deliveries/{held[0]}")
    assert "/resend" not in owner.page(f"dashboard/deliveries/{held[0]}")
    assert "/resend" not in agent.page(f"dashboard/deliveries/{held[0]}")

    shown = owner.page(f"dashboard/replays/new?endpoint_id={endpoint.id}")
    assert "Enable and replay 3 deliveries" in shown
    assert re.search(r"Its body is no longer kept[^<]*</td><td class=\"number\">2<", shown)
    assert "Enable and replay" not in owner.page("dashboard/replays/new?status=held")
    answer = owner.post("dashboard/replays", {"endpoint_id": endpoint.id, "enable": "true"})
    replay(answer.location.rpartition("/")[2])

    assert all_of("SELECT state FROM endpoints ORDER BY id") == ["active", "stopped"]
    assert all_of("SELECT status FROM deliveries WHERE id = ANY(%s)", held) == ["pending"] * 3
    assert "endpoints.enable" in all_of("SELECT action FROM audit_entries WHERE target_id = %s", endpoint.id)
    assert "/resend" in owner.page(f"dashboard/deliveries/{held[0]}")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"error_code": "timeout"}, 2),
        ({"error_code": ["timeout", "reset"]}, 3),
        ({"status_code": "503"}, 1),
        ({"status": ["failed", "held"], "kind": "tag.added"}, 1),
        ({"since": "2026-01-01T00:00", "error_code": "reset"}, 1),
        ({"until": "2026-01-01T00:00"}, 0),
    ],
    ids=str,
)
def test_the_filter_is_in_the_address(owner: Person, endpoint: Endpoint, query: dict[str, Any], found: int) -> None:
    make(endpoint, 2, last_error_code="timeout")
    make(endpoint, 1, last_error_code="reset")
    make(endpoint, 1, "held", kind="tag.added", last_status=503)

    shown = owner.page(f"dashboard/replays/new?{urlencode(query, doseq=True)}")

    assert re.search(rf"Would go out</strong><span class=\"big\">{found}<", shown)
    for name, values in query.items():
        for value in values if isinstance(values, list) else [values]:
            assert not found or f'type="hidden" name="{name}" value="{value}"' in shown


def test_several_endpoints_are_chosen_or_left_out(api: Api, owner: Person, endpoint: Endpoint) -> None:
    second, third = (Endpoint.get_by_id(api.endpoint(f"https://shop.example/{name}")) for name in ("second", "third"))
    for number, each in enumerate((endpoint, second, third), start=1):
        make(each, number)
    ticked = [("endpoint_id", endpoint.id), ("endpoint_id", third.id)]

    chosen = owner.page(f"dashboard/replays/new?{urlencode(ticked)}")
    others = owner.page(f"dashboard/replays/new?{urlencode([*ticked, ('endpoints', 'without')])}")

    assert "Endpoints: only 2" in chosen
    assert 'Would go out</strong><span class="big">4<' in chosen
    assert "Endpoints: all but 2" in others
    assert 'Would go out</strong><span class="big">2<' in others
    for each, is_ticked in ((endpoint, True), (second, False), (third, True)):
        assert (f'value="{each.id}" checked' in others) is is_ticked
    replay_id = begun(owner, endpoint_id=[endpoint.id, third.id], endpoints="without")
    assert one("SELECT count FROM replays") == 2
    assert re.search(
        r"All endpoints but</dt><dd[^>]*>https://shop.example", owner.page(f"dashboard/replays/{replay_id}")
    )


def test_with_many_endpoints_their_identifiers_are_typed(api: Api, owner: Person, endpoint: Endpoint) -> None:
    second = Endpoint.get_by_id(api.endpoint("https://shop.example/second"))
    many(api.workspace_id, endpoint_choices.MOST_TICKED)
    for each in (endpoint, second):
        make(each, 2)

    shown = owner.page(f"dashboard/replays/new?endpoint_id={endpoint.id}, {second.id}")

    assert f'name="endpoint_id" type="text" value="{endpoint.id} {second.id}"' in shown
    assert 'Would go out</strong><span class="big">4<' in shown


def test_times_have_a_zone_or_are_of_utc(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    began = clock.now().replace(microsecond=0) - timedelta(hours=1)
    local = began.astimezone(ZoneInfo("Pacific/Kiritimati"))  # 14 hours before UTC
    times = {"since": local.isoformat(), "until": (local + timedelta(hours=2)).isoformat()}

    here = owner.page(f"dashboard/replays/new?{urlencode(times)}")
    without = owner.page(
        f"dashboard/replays/new?{urlencode({name: text.removesuffix('+14:00') for name, text in times.items()})}"
    )

    assert 'Would go out</strong><span class="big">1<' in here
    assert f'value="{timestamp(began).removesuffix("Z")}" data-moment="{timestamp(began)}"' in here
    assert 'Would go out</strong><span class="big">0<' in without
    assert "(<span data-zone-name>UTC</span>)" in without


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("status=cancelled", "Must be one of"),
        ("error_code=x", "Must be one of"),
        ("kind=x", "Must be one of"),
        ("status_code=x", "A status code is a number"),
        ("since=yesterday", "Give a time such as"),
        ("since=2026-01-02T00:00&until=2026-01-01T00:00", "must be after since"),
    ],
)
def test_a_filter_that_makes_no_sense_is_said_at_its_field_and_nothing_is_counted(
    owner: Person, query: str, said: str
) -> None:
    shown = owner.page(f"dashboard/replays/new?{query}")

    assert said in shown
    assert "Would go out" not in shown


def test_what_receivers_say_is_text(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 1, last_error=NASTY, last_error_code="redirect")

    answer = owner.get("dashboard/replays/new?status=failed").text

    assert NASTY not in answer


# Beginning


def test_a_replay_is_begun_by_the_form_and_goes_to_its_page(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 3)

    replay_id = begun(owner, per_second="", error_code="")

    shown = owner.page(f"dashboard/replays/{replay_id}")
    for text in (
        "Replay of 3 deliveries",
        "3 sent again (0 arrived, 0 failed again, 3 under way), 0 skipped, 0 to come",
        "done",
    ):
        assert text in shown
    for number, status in enumerate(("delivered", "failed", "held")):
        sent = "SELECT sent_as FROM replay_rows ORDER BY number OFFSET %s LIMIT 1"
        database.rows(f"UPDATE deliveries SET status = %s WHERE id = ({sent})", (status, number))
    shown = owner.page(f"dashboard/replays/{replay_id}")
    assert "3 sent again (1 arrived, 1 failed again, 0 under way, 1 held), 0 skipped" in shown
    assert one("SELECT created_by LIKE 'mem%%' FROM replays")


def test_a_second_click_begins_no_second_replay(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    once = str(uuid.uuid4())

    first, second = (owner.post("dashboard/replays", FAILED | {"once": once}).location for _ in range(2))

    assert first == second
    assert one("SELECT count(*) FROM replays") == 1


def test_an_empty_filter_is_refused(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 3)

    answer = owner.post("dashboard/replays", {"canary": "true"})

    assert answer.status_code == 422
    assert "needs at least one field" in answer.text
    assert one("SELECT count(*) FROM jobs WHERE kind = 'replays.create'") == 0


@pytest.mark.parametrize("per_second", ["0", "1001", "many", "-1", "0.5"])
def test_a_limit_that_makes_no_sense_is_said_at_its_field_and_kept(
    owner: Person, endpoint: Endpoint, per_second: str
) -> None:
    make(endpoint, 3)

    answer = owner.post("dashboard/replays", FAILED | {"per_second": per_second})

    assert answer.status_code == 422
    assert f'value="{per_second}"' in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert one("SELECT count(*) FROM replays") == 0


# One replay


def test_a_canary_is_shown_with_what_became_of_it_and_the_rest_follows(owner: Person, endpoint: Endpoint) -> None:
    made = make(endpoint, 3)
    replay_id = begun(owner, canary="true")
    path = f"dashboard/replays/{replay_id}"

    shown = owner.page(path)
    assert "It is on its way." in shown
    assert 'data-refresh="2"' in shown
    database.rows("UPDATE deliveries SET status = 'delivered', due_at = NULL WHERE id = %s", (made[0],))
    shown = owner.page(path)
    assert "It has arrived." in shown
    assert "Send the rest" in shown

    assert owner.post(f"{path}/continue").status_code == 303
    replay(replay_id)
    assert state_of(replay_id) == "done"
    assert "data-refresh" not in owner.page(path)


def test_a_replay_is_paused_continued_and_aborted(owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    replay_id = begun(owner, per_second="1")
    path = f"dashboard/replays/{replay_id}"
    assert "Pause" in owner.page(path)

    owner.post(f"{path}/pause")
    assert state_of(replay_id) == "paused"
    assert "Go on" in owner.page(path)
    owner.post(f"{path}/continue")
    assert state_of(replay_id) == "running"
    owner.post(f"{path}/abort")
    assert state_of(replay_id) == "aborted"
    assert "2 not come to" in owner.page(path)

    owner.post(f"{path}/continue")
    assert "This replay is aborted." in owner.page(path)


def test_the_rows_say_what_became_of_each_delivery_and_are_a_file_too(owner: Person, endpoint: Endpoint) -> None:
    made = make(endpoint, 60)
    replay_id = owner.post("dashboard/replays", FAILED).location.rpartition("/")[2]
    database.rows("DELETE FROM deliveries WHERE id = %s", (made[58],))
    replay(replay_id)
    path = f"dashboard/replays/{replay_id}"

    first = owner.page(path)
    assert "Its retention period is over" not in first
    assert "its retention period is over" in first
    assert f"deliveries/{made[59]}" in first
    assert f"deliveries/{made[0]}" not in first
    [following] = re.findall(r'rel="next" href="([^"]+)"', first)
    assert f"deliveries/{made[0]}" in owner.page(following)
    skipped = owner.page(f"{path}?outcome=skipped")
    assert made[58] in skipped
    assert made[57] not in skipped
    rows = json.loads(owner.get(f"{path}?format=json").text)
    assert [row["delivery_id"] for row in rows] == made[::-1]
    assert len(owner.get(f"{path}?format=csv&outcome=skipped").text.splitlines()) == 2


def test_replays_are_listed_newest_first(owner: Person, endpoint: Endpoint) -> None:
    assert "Nothing has been replayed yet." in owner.page("dashboard/replays")
    made = [begun(owner) for _ in range(2)]

    shown = owner.page("dashboard/replays")

    assert shown.index(made[1]) < shown.index(made[0])
    assert [row["id"] for row in json.loads(owner.get("dashboard/replays?format=json").text)] == made[::-1]
    assert len(owner.get("dashboard/replays?format=csv").text.splitlines()) == 3


def test_the_pages_take_few_statements(owner: Person, endpoint: Endpoint, statements: list[str]) -> None:
    make(endpoint, 100)
    replay_id = begun(owner)
    for path in (
        "dashboard/replays",
        f"dashboard/replays/{replay_id}",
        f"dashboard/replays/new?status=delivered&endpoint_id={endpoint.id}",
    ):
        before = len(statements)
        owner.page(path)
        assert len(statements) - before <= MOST_STATEMENTS, statements[before:]


# Who may


def test_an_agent_sees_replays_and_controls_none(agent: Person, owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    replay_id = begun(owner, canary="true")

    shown = agent.page(f"dashboard/replays/{replay_id}")

    assert "Send the rest" not in shown
    assert "New replay" not in agent.page("dashboard/replays")
    assert agent.get("dashboard/replays/new").status_code == 403
    for path, fields in (
        ("dashboard/replays", FAILED),
        *((f"dashboard/replays/{replay_id}/{verb}", {}) for verb in ("pause", "continue", "abort")),
    ):
        assert agent.post(path, fields).status_code == 403
    assert all_of("SELECT state FROM replays") == ["canary"]


def test_staff_preview_without_a_visit_and_replay_on_one(support: Person, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    shown = support.page("dashboard/replays/new?status=failed")
    assert "Begin a visit above" in shown
    assert support.post("dashboard/replays", FAILED).status_code == 403

    support.visit()
    replay_id = begun(support)

    assert "Replay 3 deliveries" not in shown
    assert one("SELECT created_by LIKE 'vis%%' FROM replays WHERE id = %s", replay_id)
    assert one("SELECT ticket FROM audit_entries WHERE action = 'replays.create'") == "T-1"


def test_another_workspaces_replay_is_not_there(stranger: Person, owner: Person, endpoint: Endpoint) -> None:
    make(endpoint, 1)
    replay_id = begun(owner)

    assert stranger.get(f"dashboard/replays/{replay_id}").status_code == 404
    theirs = Person(
        stranger.client,
        one("SELECT workspace_id FROM members WHERE id NOT IN (SELECT created_by FROM replays)"),
        "",
        "",
    )
    assert theirs.get(f"dashboard/replays/{replay_id}").status_code == 404
    assert theirs.post(f"dashboard/replays/{replay_id}/abort").status_code == 404


# Discarding instead


def test_what_the_preview_counts_is_discarded_with_a_reason_and_leads_to_the_job(
    api: Api, owner: Person, endpoint: Endpoint
) -> None:
    made = make(endpoint, 3, last_error_code="dns")
    make(endpoint, 2, "pending", last_error_code="dns")
    address = f"dashboard/replays/new?endpoint_id={endpoint.id}&error_code=dns&status=failed&status=pending"
    shown = owner.page(address)
    assert "Discard 3 deliveries" in shown
    [as_of] = re.findall(r'name="as_of" value="([^"]+)"', shown)
    later = make(endpoint, 1, last_error_code="dns")
    fields = {"endpoint_id": endpoint.id, "error_code": "dns", "status": ["failed", "pending"], "as_of": as_of}

    refused = owner.post("dashboard/replays/discard", fields | {"reason": " "})
    assert (refused.status_code, '<details class="confirm" name="confirm" open>' in refused.text) == (422, True)
    answers = [
        owner.post("dashboard/replays/discard", fields | {"reason": "It has closed.", "once": once})
        for once in [str(uuid.uuid4())] * 2
    ]

    assert len({answer.location for answer in answers}) == 1
    assert "Discarded 3 of 3 deliveries." in owner.page(answers[0].location)
    assert all_of("SELECT id FROM deliveries WHERE status = 'cancelled' ORDER BY id") == made
    assert one("SELECT status FROM deliveries WHERE id = %s", later[0]) == "failed"
    assert one("SELECT count(*) FROM jobs WHERE kind = 'deliveries.discard'") == 1
    assert "discarded deliveries of the workspace" in owner.page("settings/audit")
    assert "It was discarded." in owner.page(f"dashboard/deliveries/{made[0]}")


@pytest.mark.parametrize("wrong", [{"as_of": "x"}, {"as_of": ""}, {"status": "pending"}, {"status": "", "kind": "x"}])
def test_a_form_that_does_not_say_what_it_is_about_discards_nothing(
    api: Api, owner: Person, endpoint: Endpoint, wrong: dict[str, str]
) -> None:
    make(endpoint, 1)

    answer = owner.post(
        "dashboard/replays/discard", {**FAILED, "as_of": timestamp(clock.now()), "reason": "x", **wrong}
    )

    assert answer.status_code == 422
    assert one("SELECT count(*) FROM jobs WHERE kind = 'deliveries.discard'") == 0


def test_what_can_only_be_discarded_is_offered_to_whoever_may_and_to_no_one_else(
    api: Api, owner: Person, agent: Person, support: Person, endpoint: Endpoint
) -> None:
    make(endpoint, 2, body=False)
    make(endpoint, 2, "pending")

    shown = owner.page("dashboard/replays/new?status=failed")
    assert "Nothing would go out." in shown
    assert "Discard 2 deliveries" in shown
    assert "Discard them" not in owner.page("dashboard/replays/new?status=pending")
    assert "Begin a visit above to discard them" in support.page("dashboard/replays/new?status=failed")
    for person in (agent, support):
        fields = {**FAILED, "as_of": timestamp(clock.now()), "reason": "x"}
        assert person.post("dashboard/replays/discard", fields).status_code == 403
    assert one("SELECT count(*) FROM jobs WHERE kind = 'deliveries.discard'") == 0


def test_a_discard_waits_for_the_one_that_is_under_way(
    api: Api, owner: Person, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(endpoint, 2)
    monkeypatch.setattr("app.web.writes.wait", lambda job: job)
    fields = {**FAILED, "as_of": timestamp(clock.now()), "reason": "x"}

    owner.post("dashboard/replays/discard", fields)
    again = owner.post("dashboard/replays/discard", fields | {"reason": "y"})

    assert "already" in owner.page(again.location)
    assert one("SELECT count(*) FROM jobs WHERE kind = 'deliveries.discard'") == 1
