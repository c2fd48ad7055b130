"""Runs on pages: the list, the log of one, and control over it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app import database
from app.lib import ids
from app.lib.json import timestamp
from tests.automations import carry_on
from tests.cast import Api, all_of, one
from tests.logs import MOST_STATEMENTS, NASTY, RTL
from tests.pages import Person

WAIT = {"id": "later", "kind": "wait", "seconds": 86_400}
MARK = {"id": "mark", "kind": "add_tag", "tag": "welcomed"}


def started(api: Api, *steps: dict[str, Any], name: str = "Welcome", variables: object = None) -> str:
    """Starts an automation of these steps for a new contact, carries the run on, and returns its identifier."""
    automation_id = api.published(*steps, name=name)
    contact_id = api.contact(external_id=name, first_name=NASTY, last_name=RTL)["id"]
    body = {"contact_id": contact_id, "variables": variables or {}}
    run_id = str(api.done(api.post(f"automations/{automation_id}/start", body))["resource"]["id"])
    carry_on(api.workspace_id)
    return run_id


def test_without_runs_the_list_says_what_begins_one(owner: Person) -> None:
    assert "A run begins when" in owner.page("dashboard/runs")


def test_the_list_names_automation_contact_and_failure(api: Api, owner: Person) -> None:
    run_id = started(api, MARK, name="A " + "long " * 39 + "name")
    fail(run_id, "limit")

    shown = owner.page("dashboard/runs")

    for text in ("long name", f"runs/{run_id}", "It took too long.", "1 run"):
        assert text in shown


def fail(run_id: str, code: str) -> None:
    failure = json.dumps({"code": code, "detail": "It took too long.", "step": "mark"})
    database.rows("UPDATE runs SET status = 'failed', failure = %s WHERE id = %s", (failure, run_id))


def test_runs_of_a_time_are_listed_and_counted(api: Api, owner: Person) -> None:
    first, second = (started(api, MARK, name=name) for name in ("A", "B"))
    between = timestamp(ids.time_of(second))

    since, until = owner.page(f"dashboard/runs?since={between}"), owner.page(f"dashboard/runs?until={between}")

    assert (first in since, second in since) == (False, True)
    assert (first in until, second in until) == (True, False)
    assert "1 run<" in since
    assert "1 run<" in until


def test_the_log_warns_of_names_that_printed_nothing(api: Api, owner: Person) -> None:
    text = "Hi {{ trigger.variables.name }}"
    greet = {"id": "greet", "kind": "set_field", "field": "greeting", "value": text}
    warned, silent = (
        owner.page(f"dashboard/runs/{started(api, step, name=name)}") for step, name in ((greet, "A"), (MARK, "B"))
    )

    assert "Warning: 'trigger.variables.name' printed nothing." in warned
    assert "Warning: " not in silent


def test_filters_choose(api: Api, owner: Person) -> None:
    failed_id, waiting_id = started(api, MARK), started(api, WAIT, name="Later")
    fail(failed_id, "limit")
    automation_id, contact_id = database.rows("SELECT automation_id, contact_id FROM runs WHERE id = %s", (failed_id,))[
        0
    ]

    for query in (
        "failure=limit",
        "status=failed",
        f"automation_id={automation_id}",
        f"contact_id={contact_id}",
        f"contact_id={contact_id}&failure=limit&automation_id={automation_id}&status=failed",
        f"automation_id={automation_id}&failure=limit",
    ):
        shown = owner.page(f"dashboard/runs?{query}")
        assert failed_id in shown, query
        assert waiting_id not in shown, query
        assert "1 run<" in shown, query
    for query in ("failure=gone", f"contact_id={contact_id}&status=waiting", "failure=limit&status=completed"):
        assert "No run matches" in owner.page(f"dashboard/runs?{query}"), query
    assert "There is no such choice" in owner.page("dashboard/runs?failure=x")


def test_the_list_is_a_file_too(api: Api, owner: Person) -> None:
    run_id = started(api, MARK)

    [row] = json.loads(owner.get("dashboard/runs?format=json").text)

    assert (row["id"], row["automation_name"], row["status"]) == (run_id, "Welcome", "completed")


def test_a_run_shows_why_it_began_where_it_is_and_each_step(api: Api, owner: Person) -> None:
    run_id = started(api, MARK, WAIT, variables={"order": NASTY})

    answer = owner.get(f"dashboard/runs/{run_id}")

    assert "<script>alert" not in answer.text
    shown = owner.page(f"dashboard/runs/{run_id}")
    assert f"jobs/{one('SELECT job_id FROM runs')}" in shown
    assert one("SELECT contact_id FROM runs") in shown
    assert NASTY.replace('"', '\\"') in shown
    for text in all_of("SELECT detail->>'text' FROM run_steps"):
        assert text in shown
    assert "it continues" in shown


def test_a_run_that_waits_is_cancelled(api: Api, agent: Person) -> None:
    run_id = started(api, WAIT)

    answer = agent.post(f"dashboard/runs/{run_id}/cancel")

    shown = agent.page(answer.location)
    assert "The run is cancelled." in shown
    assert "It was cancelled on request." in shown
    assert one("SELECT status FROM runs") == "cancelled"


def test_a_run_that_has_ended_is_not_cancelled_but_says_why(api: Api, owner: Person) -> None:
    run_id = started(api, MARK)

    answer = owner.post(f"dashboard/runs/{run_id}/cancel")

    assert "has completed and cannot be cancelled" in owner.page(answer.location)


def test_a_run_that_a_member_holds_goes_on(api: Api, owner: Person) -> None:
    run_id = started(api, WAIT)
    database.rows("UPDATE runs SET status = 'held', waits_for = 'member', resume_at = NULL")
    assert "Resume it" in owner.page(f"dashboard/runs/{run_id}")

    answer = owner.post(f"dashboard/runs/{run_id}/resume")

    assert "The run continues." in owner.page(answer.location)


def test_nothing_holds_a_run_that_waits(api: Api, owner: Person) -> None:
    run_id = started(api, WAIT)

    answer = owner.post(f"dashboard/runs/{run_id}/resume")

    assert "No member's message holds this run" in owner.page(answer.location)


def test_a_run_that_has_ended_is_replayed_from_a_step(api: Api, owner: Person) -> None:
    run_id = started(api, MARK, {"id": "end", "kind": "stop"})
    assert "mark (add tag)" in owner.page(f"dashboard/runs/{run_id}")

    answer = owner.post(f"dashboard/runs/{run_id}/replay", {"from_step": "end"})

    [(new_id, step)] = database.rows("SELECT id, step FROM runs WHERE parent_id = %s", (run_id,))
    assert answer.location.endswith(new_id)
    assert step == "end"
    assert "A new run has begun." in owner.page(answer.location)


def test_an_unknown_step_is_a_problem_of_the_field(api: Api, owner: Person) -> None:
    run_id = started(api, MARK)

    answer = owner.post(f"dashboard/runs/{run_id}/replay", {"from_step": "nowhere"})

    assert answer.status_code == 422
    assert "has no step" in answer.text


def test_a_run_is_not_replayed_while_it_goes_on_or_without_its_automation(api: Api, owner: Person) -> None:
    run_id = started(api, WAIT)
    assert "Replay</h2>" not in owner.page(f"dashboard/runs/{run_id}")
    answer = owner.post(f"dashboard/runs/{run_id}/replay")
    assert "Only one that has ended can be replayed" in owner.page(answer.location)

    owner.post(f"dashboard/runs/{run_id}/cancel")
    api.done(api.post(f"automations/{one('SELECT id FROM automations')}/unpublish"))
    assert "It cannot be replayed" in owner.page(f"dashboard/runs/{run_id}")
    answer = owner.post(f"dashboard/runs/{run_id}/replay")
    assert "not published" in owner.page(answer.location)


def test_a_start_that_is_accepted_is_shown_before_it_takes_effect(api: Api, owner: Person) -> None:
    automation_id, contact_id = api.published(), api.contact(external_id="c-1")["id"]
    answer = api.post(f"automations/{automation_id}/start", {"contact_id": contact_id})

    shown = owner.page(f"dashboard/runs/{api.job(answer)['resource']['id']}")

    assert "It begins in a moment." in shown


def test_a_run_outlives_its_contact_and_automation(api: Api, owner: Person) -> None:
    run_id = started(api, MARK)
    database.rows("DELETE FROM contacts; DELETE FROM automations; DELETE FROM automation_versions")

    shown = owner.page(f"dashboard/runs/{run_id}")

    assert "a deleted automation" in shown
    assert "It cannot be replayed" in shown
    assert "a deleted contact" in owner.page("dashboard/runs")


def test_another_workspace_sees_nothing(api: Api, stranger: Person, others: Api) -> None:
    run_id = started(api, MARK)
    theirs = f"/workspaces/{others.workspace_id}/dashboard/runs"

    assert stranger.get(f"dashboard/runs/{run_id}").status_code == 404
    assert stranger.get(f"{theirs}/{run_id}").status_code == 404
    assert run_id not in stranger.page(theirs)
    for action in ("cancel", "resume", "replay"):
        assert stranger.post(f"{theirs}/{run_id}/{action}").status_code == 404


def test_support_staff_act_only_during_a_visit(api: Api, support: Person) -> None:
    run_id = started(api, WAIT)

    assert "Cancel the run" not in support.page(f"dashboard/runs/{run_id}")
    assert support.post(f"dashboard/runs/{run_id}/cancel").status_code == 403
    support.visit()
    assert support.post(f"dashboard/runs/{run_id}/cancel").status_code == 303
    assert database.rows("SELECT actor_type, ticket, target_id FROM audit_entries WHERE action = 'runs.cancel'") == [
        ("support", "T-1", run_id)
    ]


def test_the_audit_log_does_not_fill_with_what_members_do_to_runs(api: Api, owner: Person) -> None:
    run_id = started(api, WAIT)

    owner.post(f"dashboard/runs/{run_id}/cancel")

    assert all_of("SELECT 1 FROM audit_entries WHERE action = 'runs.cancel'") == []


@pytest.mark.parametrize("given", ["x", "run_0", "%00"])
def test_what_is_no_run_is_not_there(owner: Person, given: str) -> None:
    assert owner.get(f"dashboard/runs/{given}").status_code == 404


def test_pages_take_few_statements(api: Api, support: Person, statements: list[str]) -> None:
    run_ids = [started(api, MARK, name=f"Number {number}") for number in range(4)]
    support.visit()

    for path in ("dashboard/runs", "dashboard/runs?status=completed", f"dashboard/runs/{run_ids[0]}"):
        support.page(path)
        statements.clear()
        support.page(path)
        assert len(statements) <= MOST_STATEMENTS, statements


def test_messages_that_were_sent_are_sent_again_only_if_that_is_asked_for(api: Api, owner: Person) -> None:
    run_id = started(api, MARK, {"id": "end", "kind": "stop"})
    rows = "UPDATE run_steps SET kind = 'send_message', detail = %s WHERE run_id = %s AND step = 'mark' RETURNING 1"
    sent = {"input": None, "output": {"message_id": "msg_1"}, "code": None, "text": "The message was queued."}
    database.rows(rows, (json.dumps(sent), run_id))

    refused = owner.post(f"dashboard/runs/{run_id}/replay", {"from_step": "mark"})

    assert refused.status_code == 422
    assert "1 message would be sent again" in refused.text
    assert "replay?" not in refused.text
    assert owner.post(f"dashboard/runs/{run_id}/replay", {"from_step": "end"}).status_code == 303
    again = owner.post(f"dashboard/runs/{run_id}/replay", {"from_step": "mark", "again": "true"})
    assert again.status_code == 303
    assert all_of("SELECT count(*) FROM runs") == [3]


def test_a_run_is_drawn_in_the_picture_of_its_version(api: Api, owner: Person) -> None:
    run_id = started(api, MARK, WAIT)

    shown = owner.page(f"dashboard/runs/{run_id}")

    assert "Here now" in shown
    assert "Wait 1 day" in shown
    assert 'class="edges gone"' in shown
    assert "Wait 1 day" in owner.page(f"dashboard/runs/{run_id}?view=list")
