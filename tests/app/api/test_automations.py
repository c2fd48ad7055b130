"""Automations: drafts, versions, and what they listen to."""

from __future__ import annotations

from typing import Any

import pytest

from app import database
from app.database import rows
from app.domain.automations import automations, counts, executions
from app.domain.automations.interpreter import MOST_WARNINGS
from app.lib import ids
from tests.cast import Api, all_of, in_threads, one, row_counts, working
from tests.talks import make_channel

STEPS = [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}]
DEFINITION = {"triggers": [{"event": "tag.added", "tag": "vip"}], "steps": STEPS}
GOAL = {"event": "sale.recorded", "within_seconds": 60}
BODY = {"name": "Welcome", "definition": DEFINITION}
UNKNOWN = "aut_01kaj5bd40e6rr3f5y2kq0w9xz"
NO_RUNS = dict.fromkeys(("queued", "running", "waiting", "held", "completed", "failed", "cancelled"), 0)
FULL = "A workspace has at most 1,000 automations. Delete one first."


def act(api: Api, automation_id: str, action: str, body: Any = None) -> dict[str, Any]:
    """Does the action and returns its job."""
    return api.done(api.post(f"automations/{automation_id}/{action}", body))


def show(api: Api, automation_id: str) -> dict[str, Any]:
    return dict(api.get(f"automations/{automation_id}").json["data"])


def listeners(automation_id: str) -> list[str]:
    return all_of("SELECT key FROM automation_listeners WHERE automation_id = %s ORDER BY key", automation_id)


# Drafts


def test_an_automation_is_created_as_a_draft(api: Api) -> None:
    made = api.automation(name="Welcome", definition=DEFINITION)

    assert made == {
        "id": made["id"],
        "name": "Welcome",
        "status": "draft",
        "version": None,
        "definition": DEFINITION,
        "reentry": None,
        "exits": [],
        "goal": None,
        "runs": NO_RUNS,
        "warnings": [],
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
    }
    assert listeners(made["id"]) == []


def test_the_identifier_is_known_at_once(api: Api) -> None:
    accepted = api.post("automations", BODY)

    resource = accepted.json["data"]["resource"]
    assert resource["url"] == f"https://bellhop.test{api.path('automations')}/{resource['id']}"
    assert api.get(f"automations/{resource['id']}").status_code == 404
    assert api.done(accepted)["resource"] == resource


def test_a_caller_who_waits_gets_the_automation(api: Api) -> None:
    with working():
        answer = api.post("automations", BODY | {"reentry": "once", "exits": [{"event": "sale.recorded"}]}, wait=20)

    assert answer.status_code == 201
    assert (answer.json["data"]["reentry"], answer.json["data"]["exits"]) == ("once", [{"event": "sale.recorded"}])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"definition": DEFINITION}, "/name"),
        (BODY | {"name": " "}, "/name"),
        (BODY | {"name": "x" * 256}, "/name"),
        ({"name": "Welcome"}, "/definition"),
        (BODY | {"definition": []}, "/definition"),
        (BODY | {"definition": {"steps": [{"id": "a", "kind": "dance"}]}}, "/definition/steps/0/kind"),
        (BODY | {"definition": {"steps": [*STEPS, *STEPS]}}, "/definition/steps/1/id"),
        (BODY | {"definition": DEFINITION | {"color": "red"}}, "/definition/color"),
        (BODY | {"reentry": "twice"}, "/reentry"),
        (BODY | {"exits": [{"event": "it.rained"}]}, "/exits/0/event"),
        (BODY | {"exits": {}}, "/exits"),
        (BODY | {"goal": []}, "/goal"),
        (BODY | {"goal": {"event": "sale.recorded"}}, "/goal/within_seconds"),
        (BODY | {"goal": {"within_seconds": 60}}, "/goal/event"),
        (BODY | {"goal": GOAL | {"within_seconds": 0}}, "/goal/within_seconds"),
        (BODY | {"goal": GOAL | {"within_seconds": 90 * 86_400 + 1}}, "/goal/within_seconds"),
        (BODY | {"goal": GOAL | {"within_seconds": "60"}}, "/goal/within_seconds"),
        (BODY | {"goal": GOAL | {"event": "message.sent"}}, "/goal/event"),
        (BODY | {"goal": GOAL | {"tag": "vip"}}, "/goal/tag"),
        (BODY | {"goal": GOAL | {"also_replies": True}}, "/goal/also_replies"),
        (BODY | {"goal": GOAL | {"if": {"field": "run.color", "is": "exists"}}}, "/goal/if/field"),
        (BODY | {"status": "published"}, "/status"),
    ],
    ids=str,
)
def test_what_cannot_run_is_refused_with_a_pointer(api: Api, body: dict[str, Any], pointer: str) -> None:
    before = row_counts()

    answer = api.post("automations", body)

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.get_json(force=True)["errors"]] == [pointer]
    assert row_counts() == before


def test_a_patch_is_checked_like_a_create(api: Api) -> None:
    automation_id = api.automation()["id"]

    answer = api.patch(f"automations/{automation_id}", {"definition": {"steps": [{"id": "a", "kind": "dance"}]}})

    assert answer.get_json(force=True)["errors"][0]["pointer"] == "/definition/steps/0/kind"


def test_a_patch_changes_the_given_fields(api: Api) -> None:
    made = api.automation(name="Welcome")

    changed = api.done(api.patch(f"automations/{made['id']}", {"name": "Greet", "definition": DEFINITION}))

    assert changed["status"] == "succeeded"
    shown = show(api, made["id"])
    assert shown == made | {"name": "Greet", "definition": DEFINITION, "updated_at": shown["updated_at"]}


def test_automations_are_listed_newest_first(api: Api, others: Api) -> None:
    made = [api.automation(name=name)["id"] for name in ("first", "second", "third")]
    others.automation()

    first = api.get("automations?limit=2").json
    second = api.get("automations", query_string={"limit": 2, "cursor": first["meta"]["nextCursor"]}).json

    assert [each["id"] for each in first["data"] + second["data"]] == made[::-1]
    assert second["meta"] == {"nextCursor": None, "hasMore": False}


def test_a_workspace_has_at_most_1000_automations(api: Api) -> None:
    database.rows(
        "INSERT INTO automations (id, workspace_id, name, definition) SELECT unnest(%s::text[]), %s, 'Filler', '{}'",
        ([ids.new("aut") for _ in range(999)], api.workspace_id),
    )
    thousandth, overtaken = api.post("automations", BODY), api.post("automations", BODY)
    api.apply()

    refused = api.post("automations", BODY)

    assert automations.QUOTA.most == 1_000
    assert api.job(thousandth)["status"] == "succeeded"
    assert api.job(overtaken)["problem"]["detail"] == FULL
    assert (refused.status_code, refused.json["detail"]) == (409, FULL)


# Versions


def test_publishing_freezes_the_draft_as_a_version(api: Api) -> None:
    automation_id = api.automation(definition=DEFINITION)["id"]
    assert act(api, automation_id, "publish")["status"] == "succeeded"
    changed = DEFINITION | {"triggers": []}

    api.done(api.patch(f"automations/{automation_id}", {"definition": changed}))

    shown = show(api, automation_id)
    assert (shown["status"], shown["version"], shown["definition"]) == ("published", 1, changed)
    [version] = api.get(f"automations/{automation_id}/versions").json["data"]
    by = api.get("/api/v1/auth/me").json["data"]["token"]["id"]
    assert version == {
        **{"version": 1, "number": 1, "definition": DEFINITION},
        **{"published_at": version["published_at"], "published_by": by},
    }
    assert api.get(f"automations/{automation_id}/versions/1").json["data"] == version
    assert listeners(automation_id) == ["tag.added:vip"]


def test_publishing_again_makes_a_new_version(api: Api) -> None:
    automation_id = api.automation(definition=DEFINITION)["id"]
    act(api, automation_id, "publish")
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"steps": STEPS}}))

    act(api, automation_id, "publish")

    assert show(api, automation_id)["version"] == 2
    first = api.get(f"automations/{automation_id}/versions?limit=1").json
    cursor = {"limit": 1, "cursor": first["meta"]["nextCursor"]}
    second = api.get(f"automations/{automation_id}/versions", query_string=cursor).json
    assert [page["data"][0]["number"] for page in (first, second)] == [2, 1]
    assert listeners(automation_id) == []


def test_a_version_becomes_the_draft_again(api: Api) -> None:
    automation_id = api.published(definition=DEFINITION)
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"steps": STEPS}}))
    act(api, automation_id, "publish")

    assert act(api, automation_id, "restore", {"version": 1})["status"] == "succeeded"

    shown = show(api, automation_id)
    assert (shown["definition"], shown["version"], shown["status"]) == (DEFINITION, 2, "published")
    assert listeners(automation_id) == []
    job = act(api, automation_id, "restore", {"version": 3})
    assert (job["status"], job["problem"]["status"]) == ("failed", 404)
    assert job["problem"]["detail"] == "This automation has no version 3."


@pytest.mark.parametrize("number", ["0", "2", "one", "-1", "9" * 40, "1.0"])
def test_a_version_that_is_not_there_is_not_found(api: Api, number: str) -> None:
    assert api.get(f"automations/{api.published()}/versions/{number}").status_code == 404


@pytest.mark.parametrize("body", [None, {}, {"version": "1"}, {"version": 0}, {"version": 10**12}, {"number": 1}])
def test_restoring_needs_a_version(api: Api, body: Any) -> None:
    assert api.post(f"automations/{api.published()}/restore", body).status_code in (400, 422)


def test_unpublishing_leaves_no_published_version(api: Api) -> None:
    automation_id = api.published(definition=DEFINITION)

    assert act(api, automation_id, "unpublish")["status"] == "succeeded"

    shown = show(api, automation_id)
    assert (shown["status"], shown["version"]) == ("unpublished", None)
    assert listeners(automation_id) == []
    act(api, automation_id, "publish")
    assert show(api, automation_id)["version"] == 2


@pytest.mark.parametrize(
    "goal",
    [GOAL, GOAL | {"if": {"field": "run.id", "is": "exists"}}, {"event": "tag.added", "tag": "a", "within_seconds": 1}],
)
def test_a_goal_is_kept_as_it_was_given(api: Api, goal: dict[str, Any]) -> None:
    made = api.automation(goal=goal)
    assert made["goal"] == goal

    api.done(api.patch(f"automations/{made['id']}", {"name": "Other"}))
    assert show(api, made["id"])["goal"] == goal
    assert listeners(made["id"]) == []


def test_exits_count_at_once(api: Api) -> None:
    automation_id = api.published(definition=DEFINITION)

    api.done(api.patch(f"automations/{automation_id}", {"exits": [{"event": "sale.recorded"}]}))

    assert listeners(automation_id) == ["sale.recorded", "tag.added:vip"]
    api.done(api.patch(f"automations/{automation_id}", {"exits": []}))
    assert listeners(automation_id) == ["tag.added:vip"]


def test_exits_count_for_the_runs_of_an_automation_that_is_no_longer_published(api: Api) -> None:
    automation_id = api.published(definition=DEFINITION, exits=[{"event": "sale.recorded"}])

    act(api, automation_id, "unpublish")

    assert listeners(automation_id) == ["sale.recorded"]
    api.done(api.patch(f"automations/{automation_id}", {"exits": []}))
    assert listeners(automation_id) == []


def test_the_exits_of_a_draft_wait_for_its_publication(api: Api) -> None:
    automation_id = api.automation(exits=[{"event": "sale.recorded"}])["id"]
    api.done(api.patch(f"automations/{automation_id}", {"exits": [{"event": "tag.added"}]}))
    assert listeners(automation_id) == []

    act(api, automation_id, "publish")

    assert listeners(automation_id) == ["tag.added"]


def starter(automation_id: str) -> dict[str, Any]:
    return {"id": "next", "kind": "start_automation", "automation_id": automation_id}


def test_a_loop_over_three_automations_is_not_published(api: Api) -> None:
    first = api.automation()["id"]
    second = api.published(starter(first))
    third = api.published(starter(second))
    closing = api.automation(starter(third))["id"]
    api.done(api.patch(f"automations/{first}", {"definition": {"steps": [starter(third)]}}))

    job = act(api, first, "publish")

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert all(each in job["problem"]["detail"] for each in (first, second, third))
    assert show(api, first)["status"] == "draft"
    assert act(api, closing, "publish")["status"] == "succeeded"


def test_an_automation_that_starts_one_that_does_not_exist_is_not_published(api: Api, others: Api) -> None:
    theirs, is_vip = others.automation()["id"], {"field": "contact.tags", "is": "contains", "value": "vip"}
    inside = {"id": "all", "kind": "branch", "if": is_vip, "then": [starter(UNKNOWN) | {"id": "inside"}]}
    automation_id = api.automation(starter(theirs), inside)["id"]

    job = act(api, automation_id, "publish")

    assert (job["status"], job["problem"]["status"]) == ("failed", 422)
    assert {each["pointer"]: each["detail"] for each in job["problem"]["errors"]} == {
        "/definition/steps/0/automation_id": "There is no such automation in this workspace.",
        "/definition/steps/1/then/0/automation_id": "There is no such automation in this workspace.",
    }
    assert show(api, automation_id)["status"] == "draft"


def test_an_automation_that_sends_on_a_channel_of_another_workspace_is_not_published(api: Api, others: Api) -> None:
    mine, theirs = (make_channel(each.workspace_id) for each in (api, others))
    hello = {"kind": "send_message", "text": "Hello"}
    is_vip = {"field": "contact.tags", "is": "contains", "value": "vip"}
    inside = {
        "id": "all",
        "kind": "branch",
        "if": is_vip,
        "then": [hello | {"id": "inside", "channel_id": ids.new("chn")}],
    }
    steps = [hello | {"id": "here", "channel_id": mine}, hello | {"id": "there", "channel_id": theirs}, inside]

    job = act(api, api.automation(*steps)["id"], "publish")

    assert (job["status"], job["problem"]["status"]) == ("failed", 422)
    assert {each["pointer"]: each["detail"] for each in job["problem"]["errors"]} == {
        "/definition/steps/1/channel_id": "There is no such channel in this workspace.",
        "/definition/steps/2/then/0/channel_id": "There is no such channel in this workspace.",
    }
    assert act(api, api.automation(steps[0])["id"], "publish")["status"] == "succeeded"


# Pausing


def test_a_published_automation_is_paused_and_resumed(api: Api) -> None:
    automation_id = api.published(definition=DEFINITION)

    assert act(api, automation_id, "pause")["status"] == "succeeded"
    paused = show(api, automation_id)
    assert act(api, automation_id, "resume")["status"] == "succeeded"

    assert (paused["status"], paused["version"]) == ("paused", 1)
    assert show(api, automation_id)["status"] == "published"
    assert listeners(automation_id) == ["tag.added:vip"]


def test_a_paused_automation_that_is_published_stays_paused(api: Api) -> None:
    automation_id = api.published()
    act(api, automation_id, "pause")

    act(api, automation_id, "publish")

    assert (show(api, automation_id)["status"], show(api, automation_id)["version"]) == ("paused", 2)


@pytest.mark.parametrize(
    ("before", "action"),
    [
        ([], "pause"),
        ([], "resume"),
        ([], "unpublish"),
        (["publish"], "resume"),
        (["publish", "pause"], "pause"),
        (["publish", "unpublish"], "pause"),
        (["publish", "unpublish"], "resume"),
        (["publish", "unpublish"], "unpublish"),
    ],
    ids=str,
)
def test_an_action_that_the_state_rules_out_is_a_conflict(api: Api, before: list[str], action: str) -> None:
    automation_id = api.automation()["id"]
    for each in before:
        act(api, automation_id, each)
    shown = show(api, automation_id)

    job = act(api, automation_id, action)

    assert (job["status"], job["problem"]["status"]) == ("failed", 409)
    assert show(api, automation_id) == shown


def test_what_is_queued_may_make_an_action_possible(api: Api) -> None:
    automation_id = api.post("automations", BODY).json["data"]["resource"]["id"]
    jobs = [api.post(f"automations/{automation_id}/{each}") for each in ("publish", "pause", "resume", "unpublish")]

    api.apply()

    assert [api.job(job)["status"] for job in jobs] == ["succeeded"] * 4
    assert show(api, automation_id)["status"] == "unpublished"


# Deletion


def test_a_deleted_automation_is_gone_with_all_that_is_its_own(api: Api) -> None:
    automation_id = api.published(definition=DEFINITION)

    job = api.done(api.delete(f"automations/{automation_id}"))

    assert job["status"] == "succeeded"
    assert api.get(f"automations/{automation_id}").status_code == 404
    assert [one(f"SELECT count(*) FROM {table}") for table in ("automation_versions", "automation_listeners")] == [0, 0]
    assert api.delete(f"automations/{automation_id}").status_code == 404


def test_a_caller_who_waits_for_a_deletion_gets_204(api: Api) -> None:
    automation_id = api.automation()["id"]

    with working():
        answer = api.delete(f"automations/{automation_id}", wait=20)

    assert answer.status_code == 204


def test_two_deletions_at_once_are_one(api: Api) -> None:
    automation_id = api.automation()["id"]

    jobs = in_threads([lambda: api.delete(f"automations/{automation_id}")] * 2)
    api.apply()

    assert sorted(api.job(job)["status"] for job in jobs) == ["failed", "succeeded"]


# Who may


def toggle(tag: str) -> list[dict[str, Any]]:
    return [{"id": f"{kind}_{tag}", "kind": kind, "tag": tag} for kind in ("remove_tag", "add_tag")]


def on_tag(tag: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"triggers": [{"event": "tag.added", "tag": tag}], "steps": list(steps)}


def test_an_automation_that_may_start_itself_says_so_before_it_is_published_and_after(api: Api) -> None:
    automation_id = api.automation(definition=on_tag("vip", *toggle("vip")))["id"]
    [warned] = show(api, automation_id)["warnings"]
    act(api, automation_id, "publish")

    assert (warned["pointer"], warned["chain"]) == ("/definition/steps/1/tag", [automation_id, automation_id])
    assert warned["detail"].startswith("This may cause 'tag.added', which starts this automation again.")
    assert show(api, automation_id)["warnings"] == [warned]
    api.done(api.patch(f"automations/{automation_id}", {"reentry": "once"}))
    assert show(api, automation_id)["warnings"] == []


def test_the_chain_over_published_automations_is_shown(api: Api, others: Api) -> None:
    others.published(definition=on_tag("a", *toggle("b")))
    second = api.automation(definition=on_tag("a", *toggle("b")))["id"]
    first = api.automation(definition=on_tag("b", *toggle("a")))["id"]
    assert show(api, first)["warnings"] == []

    act(api, second, "publish")

    [warned] = show(api, first)["warnings"]
    assert (warned["pointer"], warned["chain"]) == ("/definition/steps/1/tag", [first, second, first])
    act(api, second, "unpublish")
    assert show(api, first)["warnings"] == []


def test_starts_that_were_refused_for_their_depth_are_shown(api: Api) -> None:
    automation_id = api.published(definition=on_tag("vip"))
    rows(
        "INSERT INTO automation_deltas (id, workspace_id, automation_id, key, amount) VALUES (%s, %s, %s, %s, 3)",
        (ids.new("dlt"), api.workspace_id, automation_id, "refused:depth"),
    )

    [warned] = show(api, automation_id)["warnings"]
    assert (warned["pointer"], warned["chain"]) == ("", [])
    assert warned["detail"] == "3 starts were refused after 10 automations in a row had started each other."


def test_steps_whose_texts_name_what_is_not_there_are_shown(api: Api) -> None:
    named = ", ".join(f"{{{{ trigger.variables.v{number} }}}}" for number in range(MOST_WARNINGS + 1))
    steps = [
        {"id": "greet", "kind": "set_field", "field": "greeting", "value": "Hi {{ trigger.variables.name }}"},
        {"id": "many", "kind": "set_field", "field": "many", "value": named},
        {"id": "fine", "kind": "set_field", "field": "fine", "value": "{{ trigger.variables.name | default: 'you' }}"},
    ]
    automation_id, contact_id = api.published(*steps), api.contact(external_id="ada")["id"]
    logs = []
    for variables in ({}, {}, {"name": "Ada"}):
        body = {"contact_id": contact_id, "variables": variables}
        run_id = api.done(api.post(f"automations/{automation_id}/start", body))["resource"]["id"]
        executions.work(api.workspace_id)
        logs.append(api.get(f"runs/{run_id}").json["data"]["steps"])

    assert [step["detail"].get("warnings", []) for step in logs[0]] == [
        ["'trigger.variables.name' printed nothing."],
        [f"'trigger.variables.v{number}' printed nothing." for number in range(MOST_WARNINGS)],
        [],
    ]
    assert "warnings" not in logs[2][0]["detail"]
    assert [each["detail"] for each in show(api, automation_id)["warnings"]] == [
        "In version 1, names in the step 'greet' printed nothing, 2 times. The logs of runs tell which.",
        "In version 1, names in the step 'many' printed nothing, 3 times. The logs of runs tell which.",
    ]
    assert counts.fold() > 0
    assert len(show(api, automation_id)["warnings"]) == 2
    act(api, automation_id, "publish")
    assert show(api, automation_id)["warnings"] == []


def test_an_example_address_is_warned_of_but_not_refused(api: Api) -> None:
    step = {"id": "ask", "kind": "http_request", "method": "GET", "address": "https://crm.example/leads"}
    automation_id = api.automation(definition={"steps": [step]})["id"]
    act(api, automation_id, "publish")

    [warned] = show(api, automation_id)["warnings"]

    assert warned["pointer"] == "/definition/steps/0/address"
    assert warned["detail"].startswith("The address of crm.example is only an example.")
    act(api, automation_id, "pause")
    api.done(api.patch(f"automations/{automation_id}", {"definition": {"steps": []}}))
    assert show(api, automation_id)["warnings"] == []


def test_the_search_for_a_chain_is_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        api.published(definition=on_tag("a", *toggle("b")), name=f"Number {number}")
    first = api.automation(definition=on_tag("b", *toggle("a")))["id"]
    monkeypatch.setattr("app.domain.automations.warnings.MOST_FOLLOWED", 0)

    assert show(api, first)["warnings"] == []
