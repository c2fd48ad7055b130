"""Programs: the flat form of nested steps, read once for each version."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations.definitions import programs
from app.domain.automations.definitions.programs import program_of
from app.errors import NotFound
from app.models.automations import AutomationVersion
from tests.automations import make_automation
from tests.cast import Api

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def step(identifier: str, kind: str = "stop", **fields: Any) -> dict[str, Any]:
    return {"id": identifier, "kind": kind, **fields}


def branch(identifier: str, **lists: Any) -> dict[str, Any]:
    return step(identifier, "branch", **{"if": IS_VIP}, **lists)


def ways(*steps: dict[str, Any]) -> dict[str, Any]:
    """Where each step leads."""
    program = programs.compile({"steps": list(steps)})
    return {each.id: (each.next, *each.inside.values()) for each in program.steps.values()}


def test_steps_follow_each_other_in_their_order() -> None:
    assert programs.compile({"steps": [step("a"), step("b")]}).first == "a"
    assert ways(step("a"), step("b"), step("c")) == {"a": ("b",), "b": ("c",), "c": (None,)}


def test_after_the_last_step_inside_another_comes_the_step_after_that() -> None:
    inner = branch("inner", then=[step("d")])
    outer = branch("outer", then=[step("a"), step("b")], **{"else": [step("c"), inner]})

    assert ways(outer, step("last")) == {
        "outer": ("last", "a", "c"),
        "a": ("b",),
        "b": ("last",),
        "c": ("inner",),
        "inner": ("last", "d", "last"),
        "d": ("last",),
        "last": (None,),
    }


def test_a_list_that_is_empty_or_missing_leads_to_the_step_after() -> None:
    assert ways(branch("a", then=[]), step("b"))["a"] == ("b", "b", "b")
    assert ways(branch("a"))["a"] == (None, None, None)


def test_a_definition_without_steps_has_no_first_one() -> None:
    assert programs.compile({"steps": []}).first is None


def test_a_step_keeps_its_fields_without_the_steps_inside_it() -> None:
    program = programs.compile({"triggers": [{"event": "tag.added"}], "steps": [branch("a", then=[step("b")])]})

    assert program.steps["a"].fields == {"if": IS_VIP}
    assert program.triggers == [{"event": "tag.added"}]


def test_the_program_of_a_version_is_read_once(api: Api) -> None:
    automation_id = make_automation(api.workspace_id, {"steps": [step("a")]})

    program = program_of(automation_id, 1)
    AutomationVersion.delete().where(AutomationVersion.automation_id == automation_id).execute()

    assert program.first == "a"
    assert program_of(automation_id, 1) is program


def test_a_version_that_does_not_exist_has_no_program(api: Api) -> None:
    with pytest.raises(NotFound):
        program_of(make_automation(api.workspace_id), 2)
