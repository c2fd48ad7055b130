"""What other servers answer as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from app.lib import foreign_json, json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"id": 1234567890123456789}', {"id": 1234567890123456789}),
        ('{"id": 12345678901234567890123}', {"id": "12345678901234567890123"}),
        ("-9223372036854775809", "-9223372036854775809"),
        ("9" * 5000, "9" * 5000),
        ("[1e400, -1e400, NaN, Infinity, 1.5]", [None, None, None, None, 1.5]),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (r'"cut \ud83d"', "cut \ufffd"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'{"a\u0000": "b\u0000"}', {"a": "b"}),
        ('"two\nlines"', "two\nlines"),
        ("[" * 128 + "]" * 128, json.loads("[" * 128 + "]" * 128)),
    ],
)
def test_it_is_read_although_ours_is_stricter(text: str, value: Any) -> None:
    assert foreign_json.loads(text) == value
    assert json.loads(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "Hello", "{'a': 1}", "[1,]", "[" * 200 + "]" * 200, "[" * 65_536])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|nested"):
        foreign_json.loads(text)
