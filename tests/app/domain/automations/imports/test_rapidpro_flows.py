"""Exports of RapidPro become definitions, and nothing of them is lost without a word."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.imports import rapidpro_flows
from app.domain.automations.imports.rapidpro_expressions import path_of, template_of
from app.domain.automations.imports.sources import Unreadable
from tests.app.domain.automations.imports.flow_samples import FLOWS, _settings, entangled, node, parts_of_flow, router
from tests.app.domain.automations.imports.test_typebot_flows import all_steps, whys

__all__ = ["_settings"]


def flow(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"flows": [{"uuid": "f", "name": "A flow", "spec_version": "13.2.0", "nodes": list(nodes)}]}


def test_every_part_is_in_the_definition_or_in_the_list() -> None:
    imported = rapidpro_flows.read(FLOWS)

    assert definitions.faults(imported.definition) == []
    noted = {entry.source for entry in imported.lost}
    assert [part for part in parts_of_flow(FLOWS["flows"][0]) if part not in imported.kept | noted] == []
    assert {"localization/fra", "trigger/2", "campaign/c1/1"} <= noted
    assert rapidpro_flows.names(FLOWS) == ["Registration", "Other"]


def test_steps_of_a_registration() -> None:
    imported = rapidpro_flows.read(FLOWS)

    steps = all_steps(imported.definition["steps"])
    assert steps[0]["text"].startswith("Hi {{ contact.first_name }} {{ contact.last_name }}, red or blue?")
    assert steps[0]["buttons"][1] == {"id": "Blue as the sky over the sea", "label": "Blue as the sky ove…"}
    assert steps[0]["attachments"] == [{"address": "https://pics.example/a.png"}]
    [reply] = [step for step in steps if step["kind"] == "wait_for_reply"]
    assert reply["timeout_seconds"] == 600
    assert {"kind": "add_tag", "tag": "Reds"}.items() <= next(s for s in steps if s["kind"] == "add_tag").items()
    assert next(s for s in steps if s["kind"] == "set_field")["value"] == "{{ run.variables.favorite_color }}"
    assert next(s for s in steps if s["kind"] == "http_request")["body"] == {
        "c": "{{ run.variables.favorite_color_category }}"
    }
    [trigger] = imported.definition["triggers"]
    assert trigger["if"] == {"field": "trigger.event.data.message.text", "is": "starts_with", "value": "join"}


def test_what_has_no_equivalent_is_named_with_its_place() -> None:
    imported = rapidpro_flows.read(FLOWS)

    assert "no test like 'has_district'" in whys(imported, "n2k2")[0]
    assert "no step that sends an e-mail" in whys(imported, "n5a0")[0]
    assert "starts another flow" in whys(imported, "n5a2")[0]
    assert any("“@(word(1))” has no equivalent" in why for why in whys(imported, "n1a0"))
    assert next(entry.where for entry in imported.lost if entry.source == "n5a0") == "Node 5, action 1 (send_email)"


@pytest.mark.parametrize(
    ("said", "made"),
    [
        ("bob@example.com @@x", "bob@example.com @x"),
        ("@contact.language", "{{ contact.locale }}"),
        ("@fields.age and @contact.fields.age", "{{ contact.custom_fields.age }} and {{ contact.custom_fields.age }}"),
        ("@results.Soda.category", "{{ run.variables.soda_category }}"),
        ("@(UPPER(results.a)) @(urns.tel)", "{{ run.variables.a | upcase }} {{ contact.phone }}"),
        ("@webhook.items.0.name", "{{ steps.webhook.items[0].name }}"),
        ("{{ x }}", '{{ "{{" }} x }}'),
        ("@(" * 2000, "@(" * 2000),
        ('@("' * 2000, '@("' * 2000),
    ],
)
def test_expressions_are_templates(said: str, made: str) -> None:
    assert template_of(said, lambda why: None) == made


def test_paths_of_routers() -> None:
    assert path_of("@input.text", "reply") == "steps.reply.text"
    assert path_of("@(default(webhook.status, 0))") == "run.variables.webhook_status"
    assert path_of("@child.status") is None


@pytest.mark.parametrize(
    "damage",
    [
        {"flows": []},
        {"flows": [7]},
        {"flows": [{"name": "x", "nodes": []}]},
        {"flows": [{"spec_version": "11", "nodes": []}]},
        {"flows": [{"spec_version": "13.0", "nodes": "none"}]},
        {"flows": [{"spec_version": "13.0", "nodes": [{}]}]},
        {"flows": [{"spec_version": "13.0", "nodes": [{"uuid": "a"}, {"uuid": "a"}]}]},
        {"flows": [{"spec_version": "13.0", "nodes": [{"uuid": f"n{n}"} for n in range(3001)]}]},
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(damage: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        rapidpro_flows.read(damage)


@pytest.mark.parametrize("value", [None, 7, -1.5, True, "x" * 100_000, [], {}, [[]], {"a": []}, "{{", "@(", [{"a": 1}]])
def test_members_of_any_type_lead_to_a_definition_or_a_sentence(value: Any) -> None:
    members = ("text", "attachments", "quick_replies", "groups", "labels", "field", "url", "headers", "body", "name")
    for kind in (
        "send_msg",
        "add_contact_groups",
        "add_input_labels",
        "set_contact_field",
        "call_webhook",
        "set_run_result",
        value,
    ):
        action = {"type": kind, "method": "GET", "text": "x", "url": "https://a.example"}
        for member in members:
            given = flow(node("n1", {**action, member: value}, to="n2"), node("n2"))
            try:
                imported = rapidpro_flows.read(given)
            except Unreadable:
                continue
            assert definitions.faults(imported.definition) == []
    for member in ("operand", "cases", "categories", "wait", "result_name", "type", "default_category_uuid"):
        decided = {**router("n1", "@input.text", ("A", "has_any_word", ["a"]), wait={"type": "msg"}), member: value}
        try:
            imported = rapidpro_flows.read(flow(node("n1", router=decided, exits=["n1", "n1"])))
        except Unreadable:
            continue
        assert definitions.faults(imported.definition) == []


def test_ways_without_number_are_counted_and_refused() -> None:
    # As many nodes as a file may have. None of them makes a step.
    with pytest.raises(Unreadable, match="too entangled"):
        rapidpro_flows.read(entangled(740))


def test_a_long_flow_without_loops_is_no_reason_to_refuse() -> None:
    nodes = [
        node(
            f"n{number}",
            {"type": "send_msg", "text": f"Question {number}"},
            router=router(f"n{number}", "@contact.name", ("Yes", "has_any_word", ["yes"])),
            exits=[f"n{number + 1}"] * 2,
        )
        for number in range(490)
    ]

    assert len(rapidpro_flows.read(flow(*nodes)).definition["steps"]) == 490
