"""set_variable"""

from __future__ import annotations

from typing import Any

from app.domain.automations.steps.set_variable import MOST_VARIABLES
from app.domain.triggers import run_states
from app.models.contacts import Contact
from tests.app.domain.automations.steps.runs import carried_out


def set_variable(name: str, value: Any) -> dict[str, Any]:
    return {"kind": "set_variable", "name": name, "value": value}


def set_field(value: str) -> dict[str, Any]:
    return {"kind": "set_field", "field": "seen", "value": value}


def seen(contact_id: str) -> Any:
    return Contact.get_by_id(contact_id).custom_fields.get("seen")


def test_later_steps_read_it(workspace_id: str, contact_id: str) -> None:
    value = {"lines": [{"sku": "{{ trigger.variables.sku }}"}, 2, None]}

    run = carried_out(
        *(workspace_id, contact_id, set_variable("order", value)),
        set_field("{{ run.variables.order.lines[0].sku }} of {{ run.id }}"),
        sku="A1",
    )

    assert seen(contact_id) == f"A1 of {run.id}"
    assert run_states.represent(run)["variables"] == {"sku": "A1", "order": {"lines": [{"sku": "A1"}, 2, None]}}


def test_it_covers_what_the_run_was_started_with(workspace_id: str, contact_id: str) -> None:
    carried_out(
        *(workspace_id, contact_id, set_variable("plan", "{{ run.variables.plan }}, then gold")),
        set_field("{{ run.variables.plan }} ({{ trigger.variables.plan }})"),
        plan="tin",
    )

    assert seen(contact_id) == "tin, then gold (tin)"


def test_a_run_has_only_so_many_and_so_long_ones(workspace_id: str, contact_id: str) -> None:
    many = carried_out(workspace_id, contact_id, *(set_variable(f"v{n}", n) for n in range(MOST_VARIABLES + 1)))
    long = carried_out(workspace_id, contact_id, *(set_variable(f"v{n}", "x" * 20_000) for n in range(2)))

    assert many.failure["detail"] == "A run has at most 64 variables of its own."
    assert long.failure["detail"] == "The variables of the run are longer than 32 KiB."
    assert {many.failure["code"], long.failure["code"]} == {"limit"}
