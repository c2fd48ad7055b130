"""Exports of Typebot become definitions, and nothing of them is lost without a word."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.imports import typebot_flows
from app.domain.automations.imports.sources import Imported, Unreadable
from tests.app.domain.automations.imports.flow_samples import (
    MENU,
    QUIZ,
    _settings,
    block,
    parts_of_typebot,
    said,
    typebot,
)

__all__ = ["_settings"]


def all_steps(steps: Any) -> list[dict[str, Any]]:
    found = []
    for step in steps:
        found.append(step)
        for name in ("then", "else", "otherwise", "steps"):
            found += all_steps(step.get(name, ()))
        for arm in step.get("arms", ()):
            found += all_steps(arm["steps"])
    return found


def whys(imported: Imported, source: str) -> list[str]:
    return [entry.why for entry in imported.lost if entry.source == source]


@pytest.mark.parametrize("document", [MENU, QUIZ], ids=["menu", "quiz"])
def test_every_part_is_in_the_definition_or_in_the_list(document: dict[str, Any]) -> None:
    imported = typebot_flows.read(document)

    assert definitions.faults(imported.definition) == []
    noted = {entry.source for entry in imported.lost}
    assert [part for part in parts_of_typebot(document) if part not in imported.kept | noted] == []
    assert all(entry.where and entry.why for entry in imported.lost)


def test_a_text_before_a_question_is_its_text_and_a_button_leads_on() -> None:
    imported = typebot_flows.read(MENU)

    [question] = [step for step in all_steps(imported.definition["steps"]) if step.get("format") == "choice"]
    assert question["text"] == "What is it about?"
    assert question["buttons"][0] == {"id": "Prices", "label": "Prices"}
    assert question["buttons"][1] == {"id": "option_2", "label": "Öffnungszeiten, bit…"}
    assert {"b1", "b2", "b3", "b6", "i1", "to_prices"} <= imported.kept
    assert "cut to 20 characters" in whys(imported, "b3")[0]


def test_what_has_no_equivalent_is_named_with_its_place() -> None:
    imported = typebot_flows.read(MENU)

    [entry] = [entry for entry in imported.lost if entry.source == "b10"]
    assert entry.where == "Group “Person”, block 3 (Email)"
    assert "no step that sends an e-mail" in entry.why
    assert "no step that runs code" in whys(imported, "b11")[0]
    assert "code “{{= 1 + 1 =}}”" in whys(imported, "b12")[0]
    assert whys(imported, "b13") == ["Nothing that was imported leads here."]
    assert "leads nowhere" in whys(imported, "broken")[0]


def test_sums_arms_requests_and_conditions_have_equivalents() -> None:
    imported = typebot_flows.read(QUIZ)

    steps = all_steps(imported.definition["steps"])
    assert {"{{ run.variables.score | default: 0 | plus: 5 }}"} <= {step.get("value") for step in steps}
    [split] = [step for step in steps if step["kind"] == "split"]
    assert [(arm["name"], arm["percent"]) for arm in split["arms"]] == [("a", 30), ("b", 70)]
    [request] = [step for step in steps if step["kind"] == "http_request"]
    assert request["address"] == "https://api.example/{{ run.variables.name }}?q=1"
    assert f"{{{{ steps.{request['id']}.body.items[0].name }}}}" in {step.get("value") for step in steps}
    assert any(step.get("text") == '{{ "{%" }} B %}' for step in steps)
    assert "names no variable" in whys(imported, "k22")[0]


def test_a_file_goes_with_the_text_before_it() -> None:
    image = block("b2", "image", content={"url": "https://pics.example/x.png"})

    imported = typebot_flows.read(typebot({"one": [said("b1", "Look"), image]}, {"go": "one"}))

    [step] = imported.definition["steps"]
    assert (step["text"], step["attachments"]) == ("Look", [{"address": "https://pics.example/x.png"}])
    assert imported.lost == ()


@pytest.mark.parametrize(
    "damage",
    [
        {"groups": [{"id": "a", "blocks": "no list"}]},
        {"groups": [{"id": "a", "blocks": [7]}]},
        {"groups": [{"blocks": []}]},
        {"groups": [{"id": "a", "blocks": [{"type": "text"}]}]},
        {"groups": [{"id": "a", "blocks": [{"id": "b"}, {"id": "b"}]}]},
        {"groups": [{"id": "a", "blocks": [{"id": f"b{n}", "type": "text"} for n in range(1501)]}]},
        {"edges": [{"id": f"e{n}"} for n in range(5001)]},
        {"variables": "none"},
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(damage: dict[str, Any]) -> None:
    with pytest.raises(Unreadable) as refusal:
        typebot_flows.read({**MENU, **damage})

    assert str(refusal.value).startswith(("The file", "The typebot"))


@pytest.mark.parametrize("value", [None, 7, -1.5, True, "x" * 100_000, [], {}, [[]], {"a": []}, "{{", "{% if"])
def test_members_of_any_type_lead_to_a_definition_or_a_sentence(value: Any) -> None:
    for path in ("type", "content", "options", "items", "outgoingEdgeId"):
        for kind in (
            "text",
            "choice input",
            "Condition",
            "Set variable",
            "Webhook",
            "Wait",
            "AB test",
            "Jump",
            "image",
        ):
            given = {
                "id": "b1",
                "type": kind,
                "options": {"variableId": "vName", "webhook": value, "url": value},
                path: value,
            }
            try:
                imported = typebot_flows.read(typebot({"one": [given, said("b2", "After")]}, {"go": "one"}))
            except Unreadable:
                continue
            assert definitions.faults(imported.definition) == []
            assert "b1" in imported.kept | {entry.source for entry in imported.lost}
