"""Differences between definitions, in words."""

from __future__ import annotations

from typing import Any

import pytest

from app.web.automations import differences

MARK = {"id": "mark", "kind": "add_tag", "tag": "vip"}
WAIT = {"id": "rest", "kind": "wait", "seconds": 60}
STOP = {"id": "stop", "kind": "stop"}


def branch(*then: dict[str, Any], **fields: Any) -> dict[str, Any]:
    condition = {"field": "contact.tags", "is": "contains", "value": "vip"}
    return {"id": "fork", "kind": "branch", "if": condition, "then": list(then)} | fields


def found(old: list[Any], new: list[Any]) -> list[tuple[str, str]]:
    return [(each.what, each.step_id) for each in differences.between({"steps": old}, {"steps": new}, {})]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([MARK, WAIT], [MARK, WAIT], []),
        ([MARK], [MARK, WAIT], [("added", "rest")]),
        ([MARK, WAIT], [WAIT], [("removed", "mark")]),
        ([MARK, WAIT, STOP], [STOP, MARK, WAIT], [("moved", "stop")]),
        ([MARK, branch()], [branch(MARK)], [("moved", "mark")]),
        ([branch(MARK)], [branch(**{"else": [MARK]})], [("moved", "mark")]),
        ([MARK], [MARK | {"tag": "x"}], [("changed", "mark")]),
        ([MARK, WAIT], [WAIT, MARK | {"tag": "x"}], [("moved", "rest"), ("changed", "mark")]),
        ([MARK], [WAIT | {"id": "mark"}], [("changed", "mark")]),
        ([branch(MARK)], [branch(MARK, WAIT)], [("added", "rest")]),
    ],
)
def test_steps_are_new_gone_moved_or_changed(old: list[Any], new: list[Any], expected: list[tuple[str, str]]) -> None:
    assert sorted(found(old, new)) == sorted(expected)


def test_a_changed_field_is_told_with_its_values() -> None:
    [changed] = differences.between({"steps": [WAIT]}, {"steps": [WAIT | {"seconds": 86_400}]}, {})

    assert changed.fields == [("time", "1 minute", "1 day")]
    assert changed.words == "Wait 1 day"


def test_a_changed_condition_is_told_in_words() -> None:
    other = branch(**{"if": {"field": "contact.email", "is": "exists"}})

    [changed] = differences.between({"steps": [branch()]}, {"steps": [other]}, {})

    assert changed.fields == [("if", "the contact has the tag “vip”", "the contact's email is known")]


def test_arms_are_compared_without_their_steps() -> None:
    def split(percent: int, *steps: dict[str, Any]) -> dict[str, Any]:
        arms = [{"name": "a", "percent": percent, "steps": list(steps)}, {"name": "b", "percent": 100 - percent}]
        return {"id": "arms", "kind": "split", "arms": arms}

    assert found([split(50)], [split(50, MARK)]) == [("added", "mark")]
    [changed] = differences.between({"steps": [split(50)]}, {"steps": [split(30)]}, {})
    assert changed.fields == [("arms", "a 50 %, b 50 %", "a 30 %, b 70 %")]


def test_triggers_are_compared_in_words() -> None:
    old, new = ({"triggers": [{"event": event}], "steps": []} for event in ("sale.recorded", "contact.created"))

    assert differences.of_triggers(old, new, {}) == [
        ("added", "A contact is created"),
        ("removed", "A sale is recorded"),
    ]


def test_marks_name_what_has_become_of_each_step() -> None:
    marks = differences.marks_of(
        differences.between({"steps": [MARK, STOP]}, {"steps": [STOP | {"result": {}}, WAIT]}, {})
    )

    assert {step: mark.word for step, mark in marks.items()} == {"mark": "Removed", "stop": "Changed", "rest": "New"}
