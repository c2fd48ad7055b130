"""Checks of macros: what the OpenAPI document says of actions is what is checked."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.domain.macros import macro_actions
from app.domain.macros.macro_actions import ACTION_KINDS

OF_KINDS = [schema for name, schema in macro_actions.SCHEMAS.items() if name != "Action"]
REPLY_ID = "srp_01kaj5bd40e6rr3f5y2kq0w9xz"


def is_described(action: dict[str, Any]) -> bool:
    return any(Draft202012Validator(schema).is_valid(action) for schema in OF_KINDS)


@pytest.mark.parametrize("kind", ACTION_KINDS)
def test_the_example_of_a_kind_is_valid(kind: str) -> None:
    example = {"kind": kind, **ACTION_KINDS[kind].example}

    assert list(macro_actions.faults([example], "")) == []
    assert is_described(example)


@pytest.mark.parametrize(
    "action",
    [
        {"kind": "reply"},
        {"kind": "reply", "text": "Hi", "saved_reply_id": REPLY_ID},
        {"kind": "reply", "saved_reply_id": "srp_1"},
        {"kind": "note"},
        {"kind": "assign", "assignee_id": "you"},
        {"kind": "label", "labels": []},
        {"kind": "snooze", "seconds": 60, "until": "2030-01-01T00:00:00Z"},
        {"kind": "close", "status": "closed"},
        {"kind": "open"},
    ],
    ids=str,
)
def test_what_is_refused_is_not_described(action: dict[str, Any]) -> None:
    assert [fault.pointer[:2] for fault in macro_actions.faults([action], "")] == ["/0"]
    assert not is_described(action)


def test_a_kind_that_there_is_not_gets_the_nearest() -> None:
    [fault] = macro_actions.faults([{"kind": "lable"}], "/actions")

    assert fault.pointer == "/actions/0/kind"
    assert "Did you mean 'label'?" in fault.detail
