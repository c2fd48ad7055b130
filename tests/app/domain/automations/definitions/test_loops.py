"""Loops: automations that would start each other without a wait are found, and named."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.definitions import programs

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
PAUSE = {"id": "pause", "kind": "wait", "seconds": 1}
STOP = {"id": "end", "kind": "stop"}


def starts(automation_id: str) -> dict[str, Any]:
    return {"id": f"start_{automation_id}", "kind": "start_automation", "automation_id": automation_id}


def branch(*steps: Any, name: str = "then") -> dict[str, Any]:
    return {"id": "branch", "kind": "branch", "if": IS_VIP, name: list(steps)}


def of(*steps: Any) -> dict[str, Any]:
    return {"steps": list(steps)}


@pytest.mark.parametrize(
    ("steps", "pointer"),
    [
        ([starts("a")], "/definition/steps/0/automation_id"),
        ([branch(PAUSE, name="else"), starts("a")], "/definition/steps/1/automation_id"),
        ([branch(STOP), starts("a")], "/definition/steps/1/automation_id"),
        ([branch(starts("b"), starts("a"))], "/definition/steps/0/then/1/automation_id"),
        ([PAUSE | {"seconds": 0}, starts("a")], "/definition/steps/1/automation_id"),
    ],
)
def test_an_automation_that_starts_itself_without_a_wait_is_found(steps: list[Any], pointer: str) -> None:
    fault = definitions.loop("a", of(*steps), {}, "/definition")

    assert fault is not None
    assert fault.pointer == pointer
    assert fault.detail == "The automation would start itself again without a wait: a → a. Add a wait."


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [starts("b")],
        [PAUSE, starts("a")],
        [STOP, starts("a")],
        [branch(PAUSE, starts("a"))],
        [{"id": "ask", "kind": "wait_for_reply", "otherwise": [starts("a")]}],
    ],
)
def test_what_waits_or_ends_before_it_starts_itself_is_no_loop(steps: list[Any]) -> None:
    assert definitions.loop("a", of(*steps), {"b": of(STOP)}) is None


def test_a_loop_through_other_automations_is_named() -> None:
    published = {"b": of(branch(starts("x"), starts("c"))), "c": of(starts("a")), "x": of(starts("missing"))}

    fault = definitions.loop("a", of(starts("x"), starts("b")), published)

    assert fault is not None
    assert (fault.pointer, "a → b → c → a" in fault.detail) == ("/steps/1/automation_id", True)


def test_a_wait_anywhere_in_the_circle_breaks_it() -> None:
    assert definitions.loop("a", of(starts("b")), {"b": of(starts("c")), "c": of(PAUSE, starts("a"))}) is None


def test_a_circle_of_others_does_not_keep_the_search_busy() -> None:
    published = {name: of(starts("b"), starts("c"), starts("d")) for name in "bcd"}

    assert definitions.loop("a", of(starts("b")), published) is None


def test_the_published_version_of_the_automation_itself_does_not_count() -> None:
    assert definitions.loop("a", of(PAUSE), {"a": of(starts("a"))}) is None


def test_hundreds_of_automations_are_searched() -> None:
    chain = {f"n{number}": of(starts(f"n{number + 1}")) for number in range(500)}

    assert definitions.loop("a", of(starts("n0")), chain) is None
    assert definitions.loop("a", of(starts("n0")), chain | {"n500": of(starts("a"))}) is not None


def test_each_automation_is_followed_once_however_many_steps_start_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile = programs.compile
    monkeypatch.setattr(
        "app.domain.automations.definitions.loops.compile", lambda given: compiled.append(given) or compile(given)
    )
    others = [f"other{number}" for number in range(50)]
    all_of_them = [starts(each) | {"id": f"step{number}"} for number, each in enumerate(others * 10)]

    assert definitions.loop("a", of(*all_of_them), {each: of(*all_of_them) for each in others}) is None
    assert len(compiled) == 1 + len(others)
