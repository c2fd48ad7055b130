"""Every example in the guide to automations is accepted, and runs as it stands."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app import database
from app.domain.automations.definitions import programs
from app.lib import json
from app.models.runs import Run
from tests.automations import make_automation
from tests.cast import Api, one
from tests.docs.automations import PAGE, go_on, publish
from tests.talks import make_member, receive

BLOCKS = [
    json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
]
GOALS = [block for block in BLOCKS if "within_seconds" in block]
STEPS = [block for block in BLOCKS if "kind" in block]
TRIGGERS = [block for block in BLOCKS if block.keys() & {"event", "before", "date"} and block not in (*GOALS, *STEPS)]
# Conditions in the text too, such as one that compares two fields.
INLINE = [json.loads(found) for found in re.findall(r'`(\{"field".*?\})`', PAGE.read_text())]
CONDITIONS = [*(block for block in BLOCKS if "is" in block), *INLINE]


def test_there_is_nothing_else() -> None:
    others = [block for block in BLOCKS if "kind" not in block and "definition" not in block]

    assert [sorted(block) for block in others] == [
        ["steps", "triggers"],
        ["event", "if"],
        ["before", "seconds"],
        ["at", "date", "every", "offset_days"],
        ["at", "every", "on", "segment_id"],
        ["every", "segment_id"],
        ["event", "if"],
        ["event", "within_seconds"],
        ["field", "is", "value"],
    ]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["kind"])
def test_a_step_runs(shop: Api, step: dict[str, Any]) -> None:
    member_id, contact = make_member(shop.workspace_id), shop.contact(email="ada@example.com", phone="+4930123456")
    written = re.sub(rb"mem_\w+", member_id.encode(), json.dumps(step))
    for named in set(re.findall(rb"aut_\w+", written)):
        make_automation(shop.workspace_id, id=named.decode())
    receive(shop.workspace_id, contact["id"], one("SELECT id FROM channels"), "Hello")
    definition = {"triggers": [], "steps": [json.loads(written)]}
    automation_id = publish(shop, {"name": "Example", "definition": definition})

    variables = {"items": ["hat", "tie"], "order": "17"}
    shop.post(f"automations/{automation_id}/start", {"contact_id": contact["id"], "variables": variables})
    shop.apply()
    go_on(shop)
    for _ in range(2):
        go_on(shop, pass_time=True)

    run = Run.get(Run.automation_id == automation_id)
    assert (run.status, run.failure) == ("completed", None)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["kind"])
def test_a_step_and_what_it_names_are_checked_as_it_stands(step: dict[str, Any]) -> None:
    assert programs.compile({"triggers": [], "steps": [step]})


@pytest.mark.parametrize("block", TRIGGERS)
def test_a_trigger_is_accepted(shop: Api, block: dict[str, Any]) -> None:
    is_exit = "run." in json.dumps(block).decode()
    definition = {"triggers": [] if is_exit else [block], "steps": [{"id": "end", "kind": "stop"}]}

    publish(shop, {"name": "Example", "definition": definition, "exits": [block] if is_exit else []})


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_is_judged(shop: Api, condition: dict[str, Any]) -> None:
    contact = shop.contact(email="ada@example.com", tags=["vip"])
    database.rows("UPDATE contacts SET created_at = now() - interval '90 days'")
    end = {"id": "end", "kind": "stop"}
    steps = [{"id": "choice", "kind": "branch", "if": condition, "then": [end | {"result": {"holds": "yes"}}]}]
    automation_id = publish(shop, {"name": "Example", "definition": {"steps": [*steps, {**end, "id": "other"}]}})

    shop.post(
        f"automations/{automation_id}/start", {"contact_id": contact["id"], "variables": {"email": "ada@example.com"}}
    )
    shop.apply()
    go_on(shop)

    assert one("SELECT result FROM runs") == {"holds": "yes"}


@pytest.mark.parametrize("goal", GOALS)
def test_a_goal_is_accepted(shop: Api, goal: dict[str, Any]) -> None:
    publish(shop, {"name": "Example", "definition": {"steps": [{"id": "end", "kind": "stop"}]}, "goal": goal})


def test_the_first_definition_runs(shop: Api) -> None:
    [first] = [block for block in BLOCKS if "steps" in block and "kind" not in block and "definition" not in block]
    publish(shop, {"name": "First", "definition": first})
    contact = shop.contact(email="ada@example.com", phone="+4930123456")
    shop.done(shop.post(f"contacts/{contact['id']}/tags", {"name": "newsletter"}))

    go_on(shop)
    go_on(shop, pass_time=True)

    assert one("SELECT status FROM runs") == "completed"
