"""Simulations: what a run of a draft would do, without doing it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from app import bounds
from app.domain.automations.simulations import MOST_WAYS
from tests.bounding import set_bound
from tests.cast import Api, row_counts

ASK = {
    "id": "ask",
    "kind": "wait_for_reply",
    "timeout_seconds": 3600,
    "save_as": "answer",
    "otherwise": [{"id": "silent", "kind": "add_tag", "tag": "silent"}],
}
TWO_STEPS = (
    {"id": "pause", "kind": "wait", "seconds": 86_400},
    {"id": "mark", "kind": "add_tag", "tag": "{{ trigger.variables.tag }} of {{ contact.first_name }}"},
)


def simulate(api: Api, automation_id: str, body: Any = None) -> dict[str, Any]:
    answer = api.post(f"automations/{automation_id}/simulate", body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json["data"])


def test_a_draft_is_simulated_without_a_trace(api: Api) -> None:
    automation_id = api.automation(*TWO_STEPS)["id"]
    contact_id = api.contact(email="ada@example.com", first_name="Ada")["id"]
    before = row_counts()

    found = simulate(api, automation_id, {"contact_id": contact_id, "variables": {"tag": "friend"}})

    assert (found["status"], found["failure"]) == ("completed", None)
    assert [(step["id"], step["status"]) for step in found["steps"]] == [
        ("pause", "waiting"),
        ("pause", "succeeded"),
        ("mark", "succeeded"),
    ]
    assert "friend of Ada" in str(found["steps"][-1]["detail"])
    assert row_counts() == before
    assert api.show_contact(contact_id)["tags"] == []


def test_it_is_the_draft_that_is_simulated(api: Api) -> None:
    automation_id = api.published(*TWO_STEPS)
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"steps": []}}))

    assert simulate(api, automation_id) == {"status": "completed", "failure": None, "steps": []}


def test_without_a_contact_one_without_data_is_simulated(api: Api) -> None:
    found = simulate(api, api.automation(*TWO_STEPS)["id"])

    assert found["status"] == "completed"
    assert found["steps"][-1]["detail"]["input"] is not None


def test_replies_are_given_wait_by_wait(api: Api) -> None:
    conversation = {"id": "hello", "kind": "send_message", "text": "Hello?"}
    automation_id = api.automation(conversation, ASK, {**ASK, "id": "again", "otherwise": []})["id"]

    answered = simulate(api, automation_id, {"replies": ["Yes"]})

    assert "Yes" in str(answered)


@pytest.mark.parametrize(
    ("reply", "text", "button_id"),
    [("Yes", "Yes", None), ({"button_id": "go"}, "Go on, Ada", "go"), ({"button_id": "other"}, "other", "other")],
)
def test_a_reply_may_be_a_press(api: Api, reply: Any, text: str, button_id: str | None) -> None:
    offered = [{"id": "go", "label": "Go on, {{ trigger.variables.name }}"}]
    question = {"id": "hello", "kind": "send_message", "text": "Shall we?", "buttons": offered}
    automation_id = api.automation(question, ASK)["id"]

    found = simulate(api, automation_id, {"replies": [reply], "variables": {"name": "Ada"}})

    asked = {"text": "Shall we?", "buttons": [{"id": "go", "label": "Go on, Ada"}]}
    assert found["steps"][0]["detail"]["input"] == asked
    output = found["steps"][-1]["detail"]["output"]
    assert (output["text"], output["button_id"]) == (text, button_id)


CALL = {
    **{"id": "call", "kind": "http_request", "method": "POST", "address": "https://shop.example/hooks"},
    "save_as": "it",
}
JUDGE = {
    **{"id": "judge", "kind": "branch", "if": {"field": "steps.call.status", "is": "equals", "value": 200}},
    "then": [{"id": "yes", "kind": "add_tag", "tag": "{{ steps.it.plan }}"}],
    "else": [{"id": "no", "kind": "add_tag", "tag": "{{ steps.call.error.code | default: 'silence' }}"}],
}


@pytest.mark.parametrize(
    ("responses", "text", "tag"),
    [
        ({"call": {"status": 200, "body": {"plan": "gold"}}}, "The server answered 200.", "gold"),
        ({"call": {"status": 200, "body": '{"plan": "silver"}'}}, "The server answered 200.", "silver"),
        ({"call": {"status": 503}}, "The server answered 503", "status"),
        ({"call": {"status": 302, "body": None}}, "Redirects are not followed", "redirect"),
        ({}, "There is no response in a simulation. Give one as 'responses', under 'call'.", "silence"),
    ],
)
def test_responses_are_given_by_step(api: Api, responses: dict[str, Any], text: str, tag: str) -> None:
    found = simulate(api, api.automation(CALL, JUDGE)["id"], {"responses": responses})

    assert [(step["id"], step["status"]) for step in found["steps"][:1]] == [("call", "waiting")]
    assert found["steps"][1]["detail"]["text"].startswith(text)
    assert found["steps"][-1]["detail"]["input"] == {"tag": tag}


def test_the_event_that_starts_it_is_given(api: Api) -> None:
    step = {"id": "mark", "kind": "add_tag", "tag": "{{ trigger.event.data.sale.currency }}"}
    definition = {"triggers": [{"event": "sale.recorded"}], "steps": [step]}
    automation_id = api.automation(definition=definition)["id"]

    found = simulate(api, automation_id, {"event": {"kind": "sale.recorded", "data": {"sale": {"currency": "EUR"}}}})

    assert found["steps"][0]["detail"]["input"] == {"tag": "EUR"}


PAID = {
    **{"id": "paid", "kind": "wait_for_event", "event": "sale.recorded", "timeout_seconds": 60, "save_as": "sale"},
    "otherwise": [{"id": "unpaid", "kind": "add_tag", "tag": "unpaid"}],
}
THANKED = {"id": "thanked", "kind": "add_tag", "tag": "{{ steps.sale.data.sale.currency | default: 'nothing' }}"}


def test_the_events_that_it_waits_for_are_given_by_step(api: Api) -> None:
    event = {"kind": "sale.recorded", "data": {"sale": {"currency": "EUR"}}}

    found = simulate(api, api.automation(PAID, THANKED)["id"], {"events": {"paid": event}})

    assert [step["id"] for step in found["steps"]] == ["paid", "paid", "thanked"]
    assert found["steps"][-1]["detail"]["input"] == {"tag": "EUR"}
    assert "ways" not in found


def test_it_goes_both_ways_where_a_response_or_an_event_is_missing(api: Api) -> None:
    judge = {**JUDGE, "then": [{"id": "yes", "kind": "add_tag", "tag": "yes"}]}
    automation_id = api.automation(CALL, judge, PAID, THANKED)["id"]

    found = simulate(api, automation_id, {"both_ways": True})

    assert [
        (
            tuple(each["outcome"] for each in way["assumed"]),
            tuple(step["id"] for step in way["steps"] if step["kind"] == "add_tag"),
        )
        for way in found["ways"]
    ] == [
        (("answered", "happened"), ("yes", "thanked")),
        (("answered", "timed_out"), ("yes", "unpaid", "thanked")),
        (("timed_out", "happened"), ("no", "thanked")),
        (("timed_out", "timed_out"), ("no", "unpaid", "thanked")),
    ]
    assert [each["step"] for each in found["ways"][0]["assumed"]] == ["call", "paid"]
    assert found["ways"][2]["steps"][-1]["detail"]["input"] == {"tag": "EUR"}
    assert {name: found[name] for name in ("status", "failure", "steps")} == {
        name: found["ways"][0][name] for name in ("status", "failure", "steps")
    }
    assert found["has_more_ways"] is False


def test_what_is_given_is_not_tried_both_ways(api: Api) -> None:
    body = {"both_ways": True, "responses": {"call": {"status": 503}}}

    [way] = simulate(api, api.automation(CALL, JUDGE)["id"], body)["ways"]

    assert (way["assumed"], way["steps"][-1]["id"]) == ([], "no")


def test_the_ways_of_a_simulation_are_limited(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [{**CALL, "id": f"call_{number}"} for number in range(10)]
    automation_id = api.automation(*calls)["id"]

    found = simulate(api, automation_id, {"both_ways": True})
    set_bound(monkeypatch, "COMPUTING_PER_SIMULATION", 200)
    costly = simulate(
        api, api.automation(*[{**call, "body": "{{ contact.id }}"} for call in calls])["id"], {"both_ways": True}
    )

    assert (len(found["ways"]), found["has_more_ways"]) == (MOST_WAYS, True)
    assert [way["failure"]["code"] for way in costly["ways"][-2:]] == ["limit"] * 2


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"event": "sale.recorded"}, "/event"),
        ({"responses": []}, "/responses"),
        ({"responses": {"call": {}}}, "/responses/call/status"),
        ({"responses": {"call": {"status": 99}}}, "/responses/call/status"),
        ({"responses": {"call": {"status": 200}}}, "/responses/call"),
        ({"events": []}, "/events"),
        ({"events": {"paid": 1}}, "/events/paid"),
        ({"events": {"paid": {}}}, "/events/paid"),
        ({"both_ways": 1}, "/both_ways"),
        ({"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz"}, "/contact_id"),
        ({"variables": []}, "/variables"),
        ({"replies": "Yes"}, "/replies"),
        ({"replies": [1]}, "/replies/0"),
        ({"replies": ["x" * 4097]}, "/replies/0"),
        ({"replies": ["Yes", {"button_id": ""}]}, "/replies/1"),
        ({"replies": [{"button_id": "yes", "text": "Yes"}]}, "/replies/0"),
        ({"steps": []}, "/steps"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(api: Api, body: dict[str, Any], pointer: str) -> None:
    answer = api.post(f"automations/{api.automation()['id']}/simulate", body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.get_json(force=True)["errors"]] == [pointer]


def test_a_simulation_that_computes_for_long_fails_with_limit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "COMPUTING_PER_SIMULATION", 100)
    steps = [{"id": f"s{n}", "kind": "add_tag", "tag": "{{ contact.id }}"} for n in range(10)]

    found = simulate(api, api.automation(*steps)["id"])

    assert (found["status"], found["failure"]["code"]) == ("failed", "limit")
    assert 0 < len(found["steps"]) < 10


def test_what_computes_for_long_needs_a_place_which_it_gives_back(api: Api) -> None:
    automation_id = api.automation(*TWO_STEPS)["id"]
    call = {"id": "call", "kind": "http_request", "method": "POST", "address": "https://shop.example/hooks"}
    small, large = (
        {"name": "Call", "definition": {"steps": [{**call, "body": ["{{ contact.id }}" + " " * length]}]}}
        for length in (100, 4_000)
    )

    with ExitStack() as waiting:
        for _ in range(bounds.WAITING_PER_WORKSPACE.most):
            waiting.enter_context(bounds.waiting(api.workspace_id))
        refused = [api.post(f"automations/{automation_id}/simulate"), api.post("automations", large)]
        accepted = api.post("automations", small)
    for _ in range(bounds.WAITING_PER_WORKSPACE.most + 1):
        simulate(api, automation_id)

    assert [(answer.status_code, answer.headers["Retry-After"]) for answer in refused] == [(429, "1")] * 2
    assert (accepted.status_code, api.post("automations", large).status_code) == (202, 202)


def test_conditions_count_towards_what_a_simulation_may_compute(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "COMPUTING_PER_SIMULATION", 5_000)
    comparison = {"field": "contact.id", "is": "matches", "value": "never"}
    decide = {"id": "which", "kind": "branch", "if": {"all": [comparison]}, "then": [], "else": []}
    pause = {"id": "pause", "kind": "wait", "seconds": 60}
    again = {"id": "again", "kind": "repeat", "times": 100, "steps": [pause, decide]}
    automation_id = api.automation(again)["id"]

    simulated = api.post(f"automations/{automation_id}/simulate", {}).json["data"]

    assert simulated["failure"]["code"] == "limit"
    assert len(simulated["steps"]) == 44  # of eleven rounds, with the wait twice in each
