from __future__ import annotations

from typing import Any

import marshmallow
import pytest
from marshmallow import fields, validate

from app.lib.schemas import Period, RequestBody

FIELDS = {
    "name": fields.String(required=True, validate=validate.Length(1, 5)),
    "limit": fields.Integer(load_default=50),
    "since": fields.AwareDateTime(),
    "note": fields.String(allow_none=True),
    "parts": fields.List(fields.Nested({"size": fields.Integer(required=True)})),
}
Ours = RequestBody.from_dict(FIELDS, name="Ours")
Theirs = marshmallow.Schema.from_dict(FIELDS, name="Theirs")


def outcome(schema: marshmallow.Schema, body: Any) -> Any:
    try:
        return schema.load(body, unknown=marshmallow.RAISE)
    except marshmallow.ValidationError as error:
        return sorted(map(str, error.normalized_messages()))


@pytest.mark.parametrize(
    "body",
    [
        {"name": "Ada"},
        {"name": "Ada", "limit": 7, "since": "2026-11-21T10:00:00Z", "note": None, "parts": [{"size": 1}]},
        {},
        {"name": "too long", "limit": "x"},
        {"name": None},
        {"name": "Ada", "parts": [{"size": 1}, {}]},
        {"name": "Ada", "parts": None},
        {"name": "Ada", "unknown": 1},
        {"name": "Ada", 1: 2},
        [],
        None,
        "Ada",
    ],
    ids=str,
)
def test_a_body_is_loaded_as_marshmallow_loads_it(body: Any) -> None:
    assert outcome(Ours(), body) == outcome(Theirs(), body)


def test_an_optional_field_that_is_empty_counts_as_not_given() -> None:
    empty = {"limit": "", "since": "", "note": "", "parts": [""]}

    assert outcome(Ours(), {"name": "Ada", **empty}) == {"name": "Ada", "limit": 50}
    assert outcome(Ours(), {"name": ""}) == outcome(Theirs(), {"name": ""})
    assert outcome(Ours(), {"name": "Ada", "unknown": ""}) == outcome(Ours(), {"name": "Ada", "unknown": 1})


def test_an_empty_field_of_a_choice_does_not_widen_it() -> None:
    class Chosen(Period):
        contact_id = fields.String(validate=validate.Length(1))

    with pytest.raises(marshmallow.ValidationError):
        Chosen().load({"contact_id": ""})
