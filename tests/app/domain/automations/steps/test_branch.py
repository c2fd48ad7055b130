"""branch and stop"""

from __future__ import annotations

from typing import Any

from app.models.contacts import Contact
from app.models.runs import RunStep
from tests.app.domain.automations.steps.runs import carried_out, log_of

IS_GOLD = {"field": "trigger.variables.plan", "is": "equals", "value": "gold"}


def tag(name: str) -> dict[str, Any]:
    return {"id": name, "kind": "add_tag", "tag": name}


def test_a_branch_takes_one_of_its_lists_and_then_the_step_after_it(workspace_id: str, contact_id: str) -> None:
    branch = {"kind": "branch", "if": IS_GOLD, "then": [tag("rich")], "else": [tag("poor"), tag("thrifty")]}

    run = carried_out(workspace_id, contact_id, branch, tag("seen"), plan="gold")
    assert Contact.get_by_id(contact_id).tags == ["rich", "seen"]
    assert log_of(run)[0] == ("succeeded", "The condition holds.")

    run = carried_out(workspace_id, contact_id, branch, tag("seen"), plan="tin")
    assert Contact.get_by_id(contact_id).tags == ["poor", "rich", "seen", "thrifty"]
    assert log_of(run)[0] == ("succeeded", "The condition does not hold.")


def test_a_condition_sees_what_earlier_steps_of_the_run_changed(workspace_id: str, contact_id: str) -> None:
    is_vip = {"field": "contact.tags", "is": "contains", "value": "vip"}
    branch = {"kind": "branch", "if": is_vip, "then": [tag("seen")]}

    carried_out(workspace_id, contact_id, branch, tag("vip"), branch | {"then": [tag("late")]})

    assert Contact.get_by_id(contact_id).tags == ["late", "vip"]


def test_the_log_shows_the_condition_and_what_it_came_to(workspace_id: str, contact_id: str) -> None:
    carried_out(workspace_id, contact_id, {"kind": "branch", "if": IS_GOLD})

    [entry] = RunStep.select()
    assert (entry.detail["input"], entry.detail["output"]) == (IS_GOLD, False)


def test_stop_ends_the_run_wherever_it_stands(workspace_id: str, contact_id: str) -> None:
    branch = {"kind": "branch", "if": IS_GOLD, "then": [{"id": "end", "kind": "stop"}, tag("never")]}

    run = carried_out(workspace_id, contact_id, branch, tag("seen"), plan="gold")

    assert run.status == "completed"
    assert Contact.get_by_id(contact_id).tags == []
    assert log_of(run)[-1] == ("succeeded", "The run was stopped.")
