"""The n8n workflows to import: `make conformance` runs them, these tests check their form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.docs.pages import PAGES, blocks

# The nodes and their versions, as n8n's own sources name them.
KNOWN = {
    ("n8n-nodes-base.webhook", 2),
    ("n8n-nodes-base.code", 2),
    ("n8n-nodes-base.if", 2),
    ("n8n-nodes-base.respondToWebhook", 1.1),
    ("n8n-nodes-base.noOp", 1),
    ("n8n-nodes-base.manualTrigger", 1),
    ("n8n-nodes-base.set", 3.4),
    ("n8n-nodes-base.httpRequest", 4.2),
    ("n8n-nodes-base.splitOut", 1),
}
TRIGGERS = {"n8n-nodes-base.webhook", "n8n-nodes-base.manualTrigger"}
FILES = sorted(PAGES.glob("n8n-*.json"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def workflow(request: pytest.FixtureRequest) -> Any:
    path: Path = request.param
    return json.loads(path.read_text())


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def targets(workflow: Any) -> list[str]:
    outputs = [output for wires in workflow["connections"].values() for output in wires["main"]]
    return [wire["node"] for output in outputs for wire in output if (wire["type"], wire["index"]) == ("main", 0)]


def test_there_is_one_to_receive_and_one_to_page_through_contacts() -> None:
    assert [path.name for path in FILES] == ["n8n-contacts.json", "n8n-receive.json"]


def test_it_has_what_an_import_needs(workflow: Any) -> None:
    assert set(workflow) == {"name", "nodes", "connections", "active", "settings", "pinData"}
    assert workflow["active"] is False
    for node in workflow["nodes"]:
        assert {"parameters", "id", "name", "type", "typeVersion", "position"} <= set(node)
        assert (node["type"], node["typeVersion"]) in KNOWN
        assert UUID(node["id"])
    for key in ("id", "name"):
        assert len({node[key] for node in workflow["nodes"]}) == len(workflow["nodes"])


def test_its_connections_lead_from_the_trigger_to_every_other_node(workflow: Any) -> None:
    names = {node["name"] for node in workflow["nodes"]}
    triggers = {node["name"] for node in workflow["nodes"] if node["type"] in TRIGGERS}

    assert set(workflow["connections"]) <= names
    assert len(triggers) == 1
    assert sorted([*targets(workflow), *triggers]) == sorted(names)


def test_its_expressions_are_whole_and_name_nodes_that_it_has(workflow: Any) -> None:
    names = {node["name"] for node in workflow["nodes"]}
    expressions = [text for text in texts(workflow["nodes"]) if text.startswith("=")]

    assert expressions
    for text in expressions:
        assert re.search(r"\{\{ .+? \}\}", text), text
        assert text.count("{{") == text.count("}}")
        assert set(re.findall(r"\$\('([^']+)'\)", text)) <= names


def test_it_has_no_credential_of_ours(workflow: Any) -> None:
    assert [node["name"] for node in workflow["nodes"] if "credentials" in node] == []
    assert not re.search(r"bhp_|whsec_(?!PASTE_IT_HERE)", json.dumps(workflow))


def test_a_complete_expression_starts_and_ends_as_n8n_cuts_it() -> None:
    # n8n cuts off the first three and the last two characters, and negates the rest.
    (listing,) = [node for node in json.loads(FILES[0].read_text())["nodes"] if node["name"] == "List contacts"]
    pagination = listing["parameters"]["options"]["pagination"]["pagination"]

    assert re.fullmatch(r"=\{\{.+\}\}", pagination["completeExpression"])


def test_the_page_shows_the_settings_of_the_files() -> None:
    page = (PAGES / "n8n.md").read_text()
    shown = re.findall(r"`(\{\{ .+? \}\})`", page)
    used = [text.removeprefix("=") for path in FILES for text in texts(json.loads(path.read_text())["nodes"])]

    assert set(used) >= {text for text in shown if "event" not in text}


def test_the_code_verifies_as_the_page_on_signatures_does() -> None:
    function = blocks("signatures.md", "js")[0].partition("\n\n")[2]
    (receive,) = [path.read_text() for path in FILES if path.stem == "n8n-receive"]
    (code,) = [node["parameters"]["jsCode"] for node in json.loads(receive)["nodes"] if node["name"] == "Verify"]

    assert function in code
    assert function in blocks("zapier.md", "js")[0]
