"""How much work the worst definitions are: they fit into the limits, and are made to be slow to check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.definitions import json_schemas
from app.domain.triggers import comparisons
from app.errors import MAX_FAULTS
from app.lib import templates
from tests.bounding import set_bound
from tests.growth import calls

TOO_MUCH = "have more than 60,000 parts together"
LONG = "abcdefgh" * 7


def messages(number: int, text: Callable[[int], str], name: str = "step") -> list[dict[str, Any]]:
    return [{"id": f"{name}{each}", "kind": "send_message", "text": text(each)} for each in range(number)]


def branches(number: int, condition: Callable[[int], Any]) -> list[dict[str, Any]]:
    ways: dict[str, Any] = {"then": [], "else": []}
    return [{"id": f"if{each}", "kind": "branch", "if": condition(each), **ways} for each in range(number)]


def questions(number: int) -> list[dict[str, Any]]:
    """Questions that save their answers under one name, with ten buttons each."""
    given = {"kind": "ask", "text": "Which?", "format": "choice", "save_as": "answer", "otherwise": []}
    buttons = [[{"id": f"b{each}", "label": f"{place} {each}"} for each in range(10)] for place in range(number)]
    return [{"id": f"ask{place}", **given, "buttons": each} for place, each in enumerate(buttons)]


def compared(value: Callable[[int], str], how: str = "one_of") -> Callable[[int], dict[str, Any]]:
    values = [value(each) for each in range(100)]
    return lambda _: {"field": "steps.answer", "is": how, "value": values if how == "one_of" else values[0]}


def test_unknown_names_among_500_long_ones_are_linear_work() -> None:
    def work(number: int) -> int:
        steps = messages(number, lambda each: f"{{{{ steps.{LONG[::-1]}{each} }}}}", LONG)
        return calls(lambda: definitions.faults({"steps": steps}))

    work(500)
    assert work(500) < 2.5 * work(250)


def test_tags_without_end_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    named = templates.named
    monkeypatch.setattr(templates, "named", lambda text: read.append(text) or named(text))
    # A body of half a megabyte, as large as a draft may be.
    body = [f"{{{{a}}}}{each}" * 700 for each in range(140)]
    request = {"id": "call", "kind": "http_request", "method": "POST", "address": "https://shop.example", "body": body}

    found = definitions.faults({"steps": [request]})

    assert TOO_MUCH in found[-1].detail
    assert found[-1].pointer == "/steps"
    assert sum(map(templates.words_of, read)) <= 60_000


def test_a_large_definition_of_ordinary_texts_is_within_the_budget() -> None:
    text = "Hello {{ contact.first_name | default: 'there' }}, it is {{ trigger.event.kind }}. {{ contact.email }}"

    assert definitions.faults({"steps": messages(json_schemas.MOST_STEPS, lambda each: f"{each} {text}")}) == []


def test_values_that_no_button_gives_are_compared_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    contains = comparisons.COMPARISONS["contains"]
    monkeypatch.setitem(comparisons.COMPARISONS, "contains", lambda *both: made.append(both) or contains(*both))  # type: ignore[arg-type]
    # Each is a part of the last button alone, so all before it are looked at.
    steps = [*questions(200), *branches(300, compared(lambda _: "99 ", "contains"))]

    found = definitions.faults({"steps": steps})

    assert TOO_MUCH in found[-1].detail
    assert len(made) <= 60_000


def test_values_that_buttons_give_are_found_without_comparing_them_all() -> None:
    def work(number: int) -> int:
        steps = [*questions(number), *branches(number, compared(lambda each: f"{number - 1} {each % 10}"))]
        return calls(lambda: definitions.faults({"steps": steps}))

    assert work(200) < 2.5 * work(100)


def test_regular_expressions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "COMPUTING_PER_DEFINITION", 250)
    matching = {"all": [{"field": "contact.id", "is": "matches", "value": f"(a{{9}}){each}"} for each in range(10)]}

    assert definitions.faults({"steps": branches(1, lambda _: matching)}) == []
    assert len(definitions.faults({"steps": branches(2, lambda _: matching)})) == 1


@pytest.mark.parametrize("at", ["step", "exits", "conditions"])
def test_no_more_is_looked_at_than_is_told(at: str) -> None:
    unknown = {f"texx{number}": 1 for number in range(20_000)}
    comparison = {"field": "contact.firstname", "is": "equals", "other": "conversation.asignee"}
    event = {"event": "tag.added", "if": {"all": [comparison] * 100}}
    work = {
        "step": lambda: definitions.faults({"steps": [{"id": "a", "kind": "stop", **unknown}]}),
        "exits": lambda: definitions.exit_faults([event] * 20),
        "conditions": lambda: definitions.faults({"steps": branches(500, lambda _: {"any": [comparison] * 20})}),
    }[at]

    assert len(work()) == MAX_FAULTS
    assert calls(work) < 100_000
