"""Chains: automations that may start each other by events are found, with the way back."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.definitions.loops import Chain

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def add(tag: str) -> dict[str, Any]:
    return {"id": f"add{len(tag)}", "kind": "add_tag", "tag": tag}


def remove(tag: str) -> dict[str, Any]:
    return {"id": f"remove{len(tag)}", "kind": "remove_tag", "tag": tag}


def sets(value: Any, field: str = "plan") -> dict[str, Any]:
    return {"id": f"set_{value!r:.2}{len(field)}", "kind": "set_field", "field": field, "value": value}


def on(event: str, *steps: Any, **fields: Any) -> dict[str, Any]:
    return {"triggers": [{"event": event, **fields}], "steps": list(steps)}


def starts(automation_id: str) -> dict[str, Any]:
    return {"id": "start", "kind": "start_automation", "automation_id": automation_id}


def ways(found: list[Chain]) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.pointer, tuple(each.automation_ids)) for each in found]


@pytest.mark.parametrize(
    ("definition", "pointer"),
    [
        (on("tag.added", remove("vip"), add("vip")), "/steps/1/tag"),
        (on("tag.added", remove("vip"), add("vip"), tag="vip"), "/steps/1/tag"),
        (on("tag.added", remove("{{ contact.email }}"), add("vip"), tag="vip"), "/steps/1/tag"),
        (on("tag.added", remove("vip"), add("{{ contact.email }}"), tag="other"), "/steps/1/tag"),
        (on("tag.removed", {"id": "b", "kind": "branch", "if": IS_VIP, "then": [remove("vip"), add("vip")]}), None),
        (on("contact.updated", sets("{{ trigger.event.id }}")), "/steps/0/value"),
        (on("contact.updated", sets(1), sets(2, "custom_fields.plan")), "/steps/0/value"),
        (on("automation.completed"), "/triggers"),
        (on("automation.started"), "/triggers"),
    ],
)
def test_an_automation_that_may_start_itself_is_found(definition: dict[str, Any], pointer: str | None) -> None:
    found = ways(definitions.chains("a", definition, {}))

    assert (pointer or "/steps/0/then/0/tag", ("a", "a")) in found


@pytest.mark.parametrize(
    "definition",
    [
        on("tag.added", add("vip"), tag="vip"),
        on("tag.added", remove("vip"), add("other"), tag="vip"),
        on("tag.added", add("{{ contact.email }}")),
        on("contact.updated", sets(1)),
        on("contact.updated", sets(None)),
        on("contact.updated", sets(1), sets(2, "other")),
        on("contact.created", sets("{{ trigger.event.id }}")),
        on("automation.completed", **{"if": {"field": "trigger.event.data.run.id", "is": "exists"}}),
        on("conversation.assigned", {"id": "a", "kind": "assign_conversation", "assignee_id": None}),
        {"steps": [starts("a")]},
        {"steps": []},
    ],
)
def test_what_ends_by_itself_is_no_chain(definition: dict[str, Any]) -> None:
    assert definitions.chains("a", definition, {}) == []


def test_a_chain_over_others_shows_each_of_them_and_is_the_shortest() -> None:
    others = {
        "b": on("tag.added", add("bb"), tag="a"),
        "c": on("tag.added", starts("d"), tag="bb"),
        "d": {"steps": [sets("{{ run.id }}"), remove("a"), remove("bb")]},
        "e": on("tag.added", add("c"), tag="never"),
    }
    first = on("contact.updated", add("a"))

    [chain] = definitions.chains("a", first, others)
    assert (chain.pointer, chain.automation_ids) == ("/steps/0/tag", ("a", "b", "c", "d", "a"))
    assert "'tag.added', which starts others, and these this automation again" in chain.detail
    direct = others | {"f": on("tag.added", sets("{{ run.id }}"), tag="a")}
    assert ways(definitions.chains("a", first, direct)) == [("/steps/0/tag", ("a", "f", "a"))]


def test_the_keys_of_what_may_follow() -> None:
    definition = {"steps": [add("vip"), remove("{{ contact.email }}"), sets(1), starts("b")]}

    keys, beginnings, automations = definitions.caused([definition])

    assert {"tag.added", "tag.added:vip", "tag.removed", "contact.updated", "automation.completed"} <= keys
    assert (beginnings, automations) == ({"tag.removed:"}, {"b"})


def test_large_definitions_are_judged_in_time() -> None:
    steps = [{"id": f"s{number}", "kind": "add_tag", "tag": f"t{number}"} for number in range(100)]
    steps += [{"id": f"r{number}", "kind": "remove_tag", "tag": f"t{number}"} for number in range(100)]
    large = {"triggers": [{"event": "tag.added", "tag": f"t{number}"} for number in range(20)], "steps": steps}

    found = definitions.chains("a", large, {f"b{number}": large for number in range(50)})

    assert len(found) == 20


@pytest.mark.parametrize(
    "trigger", [{"before": "booking.starts_at", "seconds": 60}, {"date": "contact.custom_fields.ends", "at": "09:00"}]
)
def test_a_trigger_by_time_ends_a_chain(trigger: dict[str, Any]) -> None:
    definition = {"triggers": [trigger], "steps": [sets("{{ trigger.event.created_at }}", "ends")]}

    assert definitions.chains("a", definition, {"b": definition}) == []
