"""Conditions in words."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.triggers import plain_words
from app.domain.triggers.comparisons import COMPARISONS

IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
IS_ADA = {"field": "contact.first_name", "is": "equals", "value": "Ada"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (IS_ADA, "the contact's first name is “Ada”"),
        ({"all": [IS_VIP, IS_ADA]}, "the contact has the tag “vip” and the contact's first name is “Ada”"),
        (
            {"any": [IS_VIP, {"all": [IS_VIP, IS_ADA]}]},
            "the contact has the tag “vip” or (the contact has the tag “vip” and the contact's first name is “Ada”)",
        ),
        ({"not": IS_VIP}, "it is not so that the contact has the tag “vip”"),
        ({"field": "contact.email", "is": "exists"}, "the contact's email is known"),
        (
            {"field": "contact.created_at", "is": "less_than", "days_ago": 60},
            "the contact's created at is more than 60 days ago",
        ),
        (
            {"field": "contact.email", "is": "equals", "other": "trigger.variables.email"},
            "the contact's email is the variable “email”",
        ),
        (
            {"field": "steps.ask.value", "is": "one_of", "value": list("abcdefg")},
            "the value of “ask” is one of “a”, “b”, “c”, “d”, “e” and 2 more",
        ),
        (
            {"field": "trigger.event.data.sale.amount", "is": "greater_than", "value": 500},
            "the event's sale amount is greater than 500",
        ),
        ({"field": "contact.custom_fields.is_vip", "is": "equals", "value": True}, "the contact's is vip is true"),
    ],
)
def test_conditions_read_as_sentences(given: dict[str, Any], said: str) -> None:
    assert plain_words.condition(given) == said


@pytest.mark.parametrize("comparison", sorted(COMPARISONS))
def test_every_comparison_reads_as_a_sentence(comparison: str) -> None:
    assert "conversation's status" in plain_words.condition(
        {"field": "conversation.status", "is": comparison, "value": "open"}
    )


@pytest.mark.parametrize("path", ["contact", "trigger", "trigger.event", "steps.code", "run.id", "strange", ""])
def test_every_path_has_words(path: str) -> None:
    assert plain_words.value_of(path).startswith("the ")
