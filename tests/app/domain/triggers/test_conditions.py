"""Conditions: how values compare, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.triggers.conditions import DEEPEST, MOST_COMPARISONS, MOST_MATCHES, faults, fields, holds, value_at

VARIABLES: dict[str, Any] = {
    "contact": {
        "email": "Ada@Example.com",
        "phone": None,
        "first_name": "",
        "tags": ["vip", "New Customer"],
        "custom_fields": {
            "plan": "Gold",
            "orders": 10,
            "score": "9.5",
            "favourite.color": "red",
            "member": True,
            "price": "1.234,50",
            "born": "21.11.1990",
            "unclear": "3/4/1990",
        },
        "created_at": "2026-11-21T10:00:00.000Z",
    },
    "trigger": {
        "event": {"data": {"sale": {"amount": "49.90"}, "lines": [{"sku": "A1"}, {"sku": "B2"}]}},
        "variables": {"empty": [], "numbers": [1, 5]},
    },
    "steps": {"ask": {"text": "  yes "}, "call": {"status": 200}},
}


def is_true(field: str, comparison: str, value: Any = None) -> bool:
    condition = {"field": field, "is": comparison} | ({} if value is None else {"value": value})
    assert list(faults(condition)) == []
    return holds(condition, VARIABLES)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("contact.email", "ada@example.com", True),
        ("contact.email", "ada@example.org", False),
        ("steps.ask.text", "Yes", True),
        ("contact.custom_fields.orders", 10, True),
        ("contact.custom_fields.orders", "10", True),
        ("contact.custom_fields.orders", "10.0", True),
        ("contact.custom_fields.score", 9.5, True),
        ("contact.custom_fields.score", "9.5\x1c", True),
        ("contact.custom_fields.member", True, True),
        ("contact.custom_fields.member", "true", True),
        ("contact.custom_fields.member", 1, False),
        ("contact.custom_fields.favourite.color", "red", True),
        ("trigger.event.data.sale.amount", 49.9, True),
        ("trigger.event.data.lines.1.sku", "B2", True),
        ("trigger.event.data.lines.2.sku", "B2", False),
        ("contact.tags", "vip", True),
        ("contact.phone", "", False),
        ("contact.nothing", "x", False),
    ],
)
def test_equals_and_its_opposite(field: str, value: Any, expected: bool) -> None:
    assert is_true(field, "equals", value) is expected
    assert is_true(field, "not_equals", value) is not expected


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("contact.tags", "VIP", True),
        ("contact.tags", "vi", False),
        ("contact.tags", "new customer", True),
        ("contact.email", "@EXAMPLE", True),
        ("contact.custom_fields.orders", 1, True),
        ("trigger.variables.numbers", "5", True),
        ("trigger.variables.empty", "x", False),
        ("contact.phone", "x", False),
        ("contact.phone", "none", False),
        ("contact.custom_fields", "plan", False),
    ],
)
def test_contains_and_its_opposite(field: str, value: Any, expected: bool) -> None:
    assert is_true(field, "contains", value) is expected
    assert is_true(field, "not_contains", value) is not expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("contact.email", True),
        ("contact.phone", False),
        ("contact.first_name", False),
        ("contact.tags", True),
        ("trigger.variables.empty", False),
        ("contact.custom_fields.member", True),
        ("contact.nothing.at.all", False),
        ("steps.call.status", True),
    ],
)
def test_exists_and_its_opposite(field: str, expected: bool) -> None:
    assert is_true(field, "exists") is expected
    assert is_true(field, "not_exists") is not expected


@pytest.mark.parametrize(
    ("field", "value", "relation"),
    [
        ("contact.custom_fields.orders", 9, 1),
        ("contact.custom_fields.orders", "9", 1),
        ("contact.custom_fields.orders", 10, 0),
        ("contact.custom_fields.score", 10, -1),
        ("trigger.event.data.sale.amount", 50, -1),
        ("contact.created_at", "2026-11-21T09:00:00Z", 1),
        ("contact.created_at", "2026-11-21T11:30:00+02:00", 1),
        ("contact.created_at", "2026-12-01", -1),
        ("contact.created_at", 5, 0),
        ("contact.email", 5, 0),
        ("contact.custom_fields.price", 1234, 1),
        ("contact.custom_fields.price", "1.234,50 €", 0),
        ("contact.custom_fields.price", "2026-11-21", 0),
        ("contact.custom_fields.born", "2000-01-01", -1),
        ("contact.custom_fields.born", "20.11.1990", 1),
        ("contact.custom_fields.born", "21 November 1990", 0),
        ("contact.custom_fields.unclear", "1990-01-01", 0),
        ("contact.custom_fields.Orders", 9, 1),
        ("contact.custom_fields.PLAN", 9, 0),
        ("contact.custom_fields.member", 0, 0),
        ("contact.nothing", 1, 0),
    ],
)
def test_greater_and_less_compare_numbers_and_times(field: str, value: Any, relation: int) -> None:
    assert is_true(field, "greater_than", value) is (relation > 0)
    assert is_true(field, "less_than", value) is (relation < 0)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("contact.custom_fields.orders", 10, (True, True)),
        ("contact.custom_fields.orders", 9, (True, False)),
        ("contact.custom_fields.score", "10", (False, True)),
        ("contact.created_at", "2026-11-21T10:00:00Z", (True, True)),
        ("contact.created_at", "2026-12-01", (False, True)),
        ("trigger.variables.numbers", 3, (True, True)),
        ("contact.email", 5, (False, False)),
        ("contact.nothing", 1, (False, False)),
    ],
)
def test_at_least_and_at_most_hold_for_the_value_too(field: str, value: Any, expected: tuple[bool, bool]) -> None:
    assert (is_true(field, "at_least", value), is_true(field, "at_most", value)) == expected


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("What is that?", "hat", False),
        ("Is that my HAT?", "hat", True),
        ("hat", "Hat", True),
        ("hats off", "hat", False),
        ("my_hat", "hat", False),
        ("Grüße an alle", "Grüß", False),
        ("I want to stop now.", "to stop", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        (["no", "my hat"], "hat", True),
        ("", "hat", False),
        (None, "none", False),
        ("anything", " ", False),
    ],
)
def test_a_word_is_found_only_as_a_whole(text: Any, word: str, expected: bool) -> None:
    assert holds({"field": "steps.ask", "is": "has_word", "value": word}, {"steps": {"ask": text}}) is expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("Order #5107, please", r"order #?[0-9]{4,6}", True),
        ("Order 51", r"order #?[0-9]{4,6}", False),
        ("12 ab", r"^[0-9]+$", False),
        (" 12 ", r"^[0-9]+$", True),
        (["no", "12"], r"^[0-9]+$", True),
        (["no", None], r".", True),
        ([], r".*", False),
        (None, r"none", False),
        (1200, r"^12", True),
        ("x" * 1_000 + "y", r"y", False),
        (["x" * 600, "x" * 399 + "yz"], r"y", True),
        (["x" * 600, "x" * 399 + "yz"], r"z", False),
    ],
)
def test_a_regular_expression_is_found_anywhere_in_the_beginning(text: Any, pattern: str, expected: bool) -> None:
    condition = {"field": "steps.ask", "is": "matches", "value": pattern}
    assert list(faults(condition)) == []
    assert holds(condition, {"steps": {"ask": text}}) is expected


@pytest.mark.parametrize(
    ("field", "values", "expected"),
    [
        ("contact.custom_fields.plan", ["silver", "gold"], True),
        ("contact.custom_fields.plan", ["silver"], False),
        ("contact.custom_fields.orders", ["9", "10.0"], True),
        ("contact.tags", ["old", "VIP"], True),
        ("contact.phone", [""], False),
    ],
)
def test_one_of_holds_if_one_value_equals(field: str, values: list[Any], expected: bool) -> None:
    assert is_true(field, "one_of", values) is expected


@pytest.mark.parametrize(
    ("field", "comparison", "other", "expected"),
    [
        ("trigger.event.data.sale.amount", "greater_than", "contact.custom_fields.score", True),
        ("contact.email", "equals", "contact.email", True),
        ("contact.email", "equals", "contact.phone", False),
        ("contact.email", "not_equals", "contact.phone", True),
        ("steps.ask.text", "one_of", "contact.tags", False),
        ("contact.custom_fields.orders", "one_of", "trigger.variables.numbers", False),
        ("contact.tags", "contains", "contact.custom_fields.plan", False),
    ],
)
def test_two_fields_are_compared(field: str, comparison: str, other: str, expected: bool) -> None:
    condition = {"field": field, "is": comparison, "other": other}
    assert list(faults(condition)) == []
    assert holds(condition, VARIABLES) is expected


@pytest.mark.parametrize(
    ("condition", "pointer", "sentence"),
    [
        (
            {"value": "{{ contact.email }}"},
            "/value",
            "Text to compare with is no template. To compare with a field",
        ),
        ({"is": "one_of", "value": ["a", "{% if x %}"]}, "/value", "Text to compare with is no template."),
        ({"is": "one_of", "value": "a"}, "/value", "Give a list of 1 to 100 values."),
        ({"is": "one_of", "value": []}, "/value", "Give a list of 1 to 100 values."),
        ({"is": "one_of", "value": ["a"] * 101}, "/value", "Give a list of 1 to 100 values."),
        ({"is": "one_of", "value": [None]}, "/value", "Give text, a number, true or false."),
        ({"value": ["a"]}, "/value", "Give text, a number, true or false."),
        ({"is": "matches", "value": "("}, "/value", "This is no regular expression of RE2: missing ): (."),
        (
            {"is": "matches", "value": "(?<=a)b"},
            "/value",
            "This is no regular expression of RE2: invalid perl",
        ),
        ({"is": "matches", "value": r"(\p{L}{0,20}1)+c"}, "/value", "This is no regular expression of RE2: "),
        ({"is": "matches", "value": 5}, "/value", "Give a regular expression as text."),
        ({"is": "matches", "value": "a" * 501}, "/value", "Text to compare with has at most 500 characters."),
        ({"is": "matches", "other": "contact.email"}, "/other", "Give the regular expression as 'value'"),
        ({"value": "a", "other": "contact.email"}, "/other", "Give either 'value' or 'other'."),
        ({"other": "foo.bar"}, "/other", "There is no 'foo.bar'."),
        ({"other": 5}, "/other", "Name the value to look at"),
        ({"is": "exists", "other": "contact.email"}, "/other", "Remove this: 'exists' compares with nothing."),
        ({}, "/value", "Give the value to compare with, or name another field as 'other'."),
        ({"is": "at_least", "value": "gold"}, "/value", "Give a number or a time to compare with, such as 18"),
        ({"is": "less_than", "value": "3/4/1990"}, "/value", "Give a number or a time to compare with, such as 18"),
    ],
)
def test_what_is_wrong_with_a_comparison(condition: dict[str, Any], pointer: str, sentence: str) -> None:
    [(found, detail)] = faults({"field": "contact.email", "is": "equals"} | condition)
    assert found == pointer
    assert detail.startswith(sentence)


def test_a_condition_has_ten_regular_expressions_at_most() -> None:
    one = {"field": "contact.email", "is": "matches", "value": "a"}
    assert list(faults({"any": [one] * MOST_MATCHES})) == []
    [(_, detail)] = faults({"any": [one] * MOST_MATCHES + [{"not": one}]})
    assert detail == "A condition has at most 10 comparisons with 'matches'."


def test_one_element_of_a_list_is_enough() -> None:
    assert is_true("trigger.variables.numbers", "greater_than", 4)
    assert is_true("trigger.variables.numbers", "less_than", 4)
    assert not is_true("trigger.variables.numbers", "greater_than", 5)
    assert is_true("contact.tags", "starts_with", "new")


def test_starts_with_looks_at_the_beginning() -> None:
    assert is_true("contact.email", "starts_with", "ADA@")
    assert is_true("contact.custom_fields.orders", "starts_with", 1)
    assert not is_true("contact.email", "starts_with", "example")
    assert not is_true("contact.phone", "starts_with", "")


def test_conditions_are_combined() -> None:
    is_vip = {"field": "contact.tags", "is": "contains", "value": "vip"}
    is_rich = {"field": "contact.custom_fields.orders", "is": "greater_than", "value": 1000}

    assert holds({"any": [is_rich, is_vip]}, VARIABLES)
    assert not holds({"all": [is_rich, is_vip]}, VARIABLES)
    assert holds({"all": [{"not": is_rich}, is_vip, {"not": {"not": is_vip}}]}, VARIABLES)


def test_a_path_does_not_reach_attributes() -> None:
    assert [value_at(path, VARIABLES) for path in ("contact.__class__", "contact.email.upper", "contact.tags.-1")] == [
        None
    ] * 3
    assert value_at("trigger.event.data.lines." + "9" * 400, VARIABLES) is None


@pytest.mark.parametrize(
    ("condition", "pointer", "detail"),
    [
        (None, "", "Give a condition"),
        ("contact.tags", "", "Give a condition"),
        ({}, "/field", "Name the value to look at"),
        ({"field": "name", "is": "exists"}, "/field", "There is no 'name'. A field begins with contact"),
        ({"field": "contact.email", "is": "like", "value": "x"}, "/is", "Give one of equals, not_equals"),
        ({"field": "contact.email", "is": ["equals"], "value": "x"}, "/is", "Give one of"),
        ({"field": "contact.email", "is": "equals"}, "/value", "Give the value to compare with"),
        ({"field": "contact.email", "is": "equals", "value": None}, "/value", "use 'exists' or 'not_exists'"),
        ({"field": "contact.email", "is": "equals", "value": ["a"]}, "/value", "Give text, a number"),
        ({"field": "contact.email", "is": "equals", "value": "x" * 5000}, "/value", "at most 4,096"),
        ({"field": "contact.email", "is": "exists", "value": 1}, "/value", "compares with nothing"),
        ({"field": "contact.email", "is": "exists", "a/b": 1}, "/a~1b", "Unknown field"),
        ({"all": []}, "/all", "at least one condition"),
        ({"any": {}}, "/any", "at least one condition"),
        ({"all": [{"not": {"field": "contact.email"}}]}, "/all/0/not/is", "Give one of"),
        ({"all": [5]}, "/all/0", "Give a condition"),
        ({"not": {"field": "contact.email", "is": "exists"}, "any": []}, "/not", "Remove this"),
    ],
)
def test_what_is_wrong_with_a_condition_is_said_where_it_is(condition: Any, pointer: str, detail: str) -> None:
    found = list(faults(condition))

    assert [(at, detail in text) for at, text in found][:1] == [(pointer, True)]


def test_conditions_are_limited_in_depth_and_number() -> None:
    exists = {"field": "contact.email", "is": "exists"}
    deep: dict[str, Any] = exists
    for _ in range(DEEPEST):
        deep = {"not": deep}

    assert list(faults(deep["not"])) == []
    assert [text for _, text in faults(deep)] == ["Conditions are nested at most 10 levels deep."]
    assert list(faults({"all": [exists] * MOST_COMPARISONS})) == []
    assert list(faults({"all": [exists] * (MOST_COMPARISONS + 1)})) == [
        ("", "A condition has at most 100 comparisons.")
    ]


def test_the_fields_of_a_condition_are_listed_with_their_places() -> None:
    condition = {"all": [{"field": "contact.email", "is": "exists"}, {"not": {"field": "steps.a", "is": "exists"}}]}

    assert sorted(fields(condition)) == [("/all/0/field", "contact.email"), ("/all/1/not/field", "steps.a")]
