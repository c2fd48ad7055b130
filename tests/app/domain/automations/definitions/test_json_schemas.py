"""The JSON Schemas of definitions describe what the validator accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.domain.automations import definitions
from app.domain.automations.definitions.json_schemas import name_of
from app.domain.automations.steps import STEP_KINDS


def validator(name: str) -> Draft202012Validator:
    """For the component of that name, apart from the OpenAPI document."""
    moved = json.loads(json.dumps(definitions.SCHEMAS).replace("#/components/schemas/", "#/$defs/"))
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": moved})


@pytest.mark.parametrize("name", definitions.SCHEMAS)
def test_each_schema_is_one(name: str) -> None:
    Draft202012Validator.check_schema(definitions.SCHEMAS[name])


@pytest.mark.parametrize("kind", STEP_KINDS)
def test_each_kind_has_a_schema_that_its_example_fits(kind: str) -> None:
    schema = definitions.SCHEMAS[name_of(kind)]

    assert schema["properties"]["kind"]["const"] == kind
    assert list(validator("Step").iter_errors(schema["example"])) == []


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"steps": [{"id": "a"}]},
        {"steps": [{"id": "a", "kind": "nothing"}]},
        {"steps": [{"id": "a b", "kind": "stop"}]},
        {"steps": [{"id": "a", "kind": "stop", "seconds": 1}]},
        {"steps": [{"id": "a", "kind": "wait", "seconds": -1}]},
        {"steps": [{"id": "a", "kind": "branch", "if": {"field": "contact.tags", "is": "like"}}]},
        {"steps": [], "triggers": [{"event": "message.sent"}]},
        {"steps": [], "triggers": [{"event": "tag.added", "tag": ""}]},
    ],
)
def test_what_the_schema_refuses_the_validator_refuses(definition: Any) -> None:
    assert list(validator("Definition").iter_errors(definition)) != []
    assert definitions.faults(definition) != []


def test_a_step_inside_another_is_checked_by_the_schema_too() -> None:
    condition = {"all": [{"not": {"field": "contact.email", "is": "exists"}}]}
    step: dict[str, Any] = {"id": "a", "kind": "branch", "if": condition, "then": [{"id": "b", "kind": "stop"}]}

    assert list(validator("Definition").iter_errors({"steps": [step]})) == []
    step["then"][0]["seconds"] = 5
    assert list(validator("Definition").iter_errors({"steps": [step]})) != []
