"""repeat"""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations.steps.repeat import KIND
from app.models.contacts import Contact
from tests.app.domain.automations.steps.runs import carried_out, log_of, woken

TAG = {"id": "mark", "kind": "add_tag", "tag": "{{ steps.it.index }}-{{ steps.it.item }}"}
END = {"kind": "set_field", "field": "rounds", "value": "{{ steps.it.rounds }}"}


def tags(contact_id: str) -> list[str]:
    return list(Contact.get_by_id(contact_id).tags)


def test_it_takes_its_steps_as_often_as_it_says(workspace_id: str, contact_id: str) -> None:
    run = carried_out(workspace_id, contact_id, {"id": "it", "kind": "repeat", "times": 3, "steps": [TAG]}, END)

    assert (run.status, tags(contact_id)) == ("completed", ["0-", "1-", "2-"])
    assert Contact.get_by_id(contact_id).custom_fields == {"rounds": "3"}
    assert [text for _, text in log_of(run)][::2] == [
        *("Round 1 begins.", "Round 2 begins.", "Round 3 begins.", "The steps were taken 3 times."),
    ]


@pytest.mark.parametrize(("items", "found"), [(["a", "b"], ["0-a", "1-b"]), ([], []), ("ab", []), (None, [])])
def test_it_takes_its_steps_once_for_each_element(
    workspace_id: str, contact_id: str, items: Any, found: list[str]
) -> None:
    step = {"id": "it", "kind": "repeat", "over": "trigger.variables.items", "steps": [TAG]}

    run = carried_out(workspace_id, contact_id, step, END, items=items)

    assert (run.status, tags(contact_id)) == ("completed", found)


def test_a_list_may_stand_in_the_definition(workspace_id: str, contact_id: str) -> None:
    carried_out(workspace_id, contact_id, {"id": "it", "kind": "repeat", "over": ["x", 2], "times": 5, "steps": [TAG]})

    assert tags(contact_id) == ["0-x", "1-2"]


def test_it_ends_when_the_condition_no_longer_holds(workspace_id: str, contact_id: str) -> None:
    is_untagged = {"not": {"field": "contact.tags", "is": "contains", "value": "1-"}}

    carried_out(workspace_id, contact_id, {"id": "it", "kind": "repeat", "while": is_untagged, "steps": [TAG]}, END)

    assert Contact.get_by_id(contact_id).custom_fields == {"rounds": "2"}


def test_a_hundred_rounds_are_the_most(workspace_id: str, contact_id: str) -> None:
    never_ends = {"not": {"field": "contact.tags", "is": "contains", "value": "never"}}
    wait = {"id": "wait", "kind": "wait", "seconds": 0}

    run = carried_out(
        workspace_id, contact_id, {"id": "it", "kind": "repeat", "while": never_ends, "steps": [wait]}, END
    )

    assert run.status == "completed"
    assert Contact.get_by_id(contact_id).custom_fields == {"rounds": "100"}


def test_a_wait_may_stand_in_a_round_and_a_repetition_in_another(workspace_id: str, contact_id: str) -> None:
    inner = {
        "id": "inner",
        "kind": "repeat",
        "times": 2,
        "steps": [
            {"id": "wait", "kind": "wait", "seconds": 60},
            {"id": "mark", "kind": "add_tag", "tag": "{{ steps.it.index }}.{{ steps.inner.index }}"},
        ],
    }

    run = carried_out(workspace_id, contact_id, {"id": "it", "kind": "repeat", "times": 2, "steps": [inner]}, END)
    for _ in range(4):
        assert run.status == "waiting"
        run = woken(run)

    assert (run.status, tags(contact_id)) == ("completed", ["0.0", "0.1", "1.0", "1.1"])


def test_something_has_to_end_it() -> None:
    [fault] = KIND.check({"steps": []}, "/steps/0")

    assert (fault.pointer, fault.detail) == ("/steps/0", "Give 'times', 'while' or 'over'.")
