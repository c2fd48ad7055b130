"""Words of steps, triggers and conditions: every kind has some."""

from __future__ import annotations

from typing import Any

import pytest

from app.channels.kinds import CHANNEL_KINDS as CHANNELS
from app.domain.automations.definitions.json_schemas import SCHEMAS
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.ask import CHOICE, FORMATS, READERS
from app.domain.triggers import comparisons, plain_words
from app.web import navigation
from app.web.automations import wordings
from tests.wires import Wire

NAMES = {
    "aut_01m8362f00ehpa3xypmbhkxwpq": "Welcome",
    "mem_01m8362f00ehpa3xypmbhkxwpq": "ada@shop.example",
    "seg_01kaj5bd40e6rr3f5y2kq0w9xz": "Regulars",
}
IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def words(kind: str, **fields: Any) -> str:
    return wordings.step({"id": "s", "kind": kind, **fields}, NAMES).sentence


@pytest.mark.parametrize("kind", sorted(STEP_KINDS))
def test_every_kind_has_words_and_an_icon(kind: str) -> None:
    given = {"id": "step", "kind": kind, **STEP_KINDS[kind].example}

    assert STEP_KINDS[kind].words(given, NAMES).title
    assert navigation._icon(wordings.icon_of(kind))


@pytest.mark.parametrize("kind", sorted(STEP_KINDS))
def test_every_way_on_from_a_step_has_words(kind: str) -> None:
    given = {"id": "step", "kind": kind, **STEP_KINDS[kind].example}
    inside = [key for key, _, _ in STEP_KINDS[kind].inside(given)]

    found = wordings.ways(given)

    assert [way.key for way in found if way.place] == inside
    assert all(way.label and way.words for way in found)


@pytest.mark.parametrize("kind", sorted(STEP_KINDS))
def test_a_step_without_any_field_is_named_all_the_same(kind: str) -> None:
    assert wordings.step({"kind": kind}, {}).title
    assert isinstance(wordings.ways({"kind": kind}), list)


def test_what_is_no_step_is_named_all_the_same() -> None:
    for given in ({}, {"kind": "juggle"}, {"kind": None}, {"kind": ["wait"]}, {"kind": "branch", "if": 1, "then": {}}):
        assert wordings.step(given, {}).title
        assert not [way for way in wordings.ways(given) if way.steps]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "wait", "seconds": 86_400}, "Wait 1 day"),
        ({"kind": "wait", "seconds": 93_784}, "Wait 1 day 2 hours 3 minutes"),
        ({"kind": "wait", "until": "2026-11-21T10:00:00Z"}, "Wait until 2026-11-21T10:00:00Z"),
        ({"kind": "send_message", "text": "Hello\nthere"}, "Send a message: Hello there"),
        ({"kind": "ask", "text": "Yours?", "format": "email"}, "Ask for an e-mail address, 3 attempts: Yours?"),
        ({"kind": "ask", "text": "How?", "format": "text"}, "Ask for a text: How?"),
        (
            {"kind": "assign_conversation", "assignee_id": "mem_01m8362f00ehpa3xypmbhkxwpq"},
            "Assign to “ada@shop.example”",
        ),
        ({"kind": "start_automation", "automation_id": "aut_01m8362f00ehpa3xypmbhkxwpq"}, "Start “Welcome”"),
        (
            {"kind": "split", "arms": [{"name": n, "percent": 50, "steps": []} for n in "ab"]},
            "Split at random: every arm 50 %",
        ),
        ({"kind": "branch", "if": IS_VIP}, "Decide: If the contact has the tag “vip”"),
        ({"kind": "repeat", "times": 3, "steps": []}, "Repeat: 3 times"),
    ],
)
def test_steps_read_as_sentences(given: dict[str, Any], said: str) -> None:
    assert wordings.step({"id": "s", **given}, NAMES).sentence == said


def test_labels_of_many_buttons_are_cut() -> None:
    buttons_ = [{"id": str(n), "label": f"Number {n}"} for n in range(10)]

    assert wordings.step({"kind": "ask", "text": "Which?", "format": "choice", "buttons": buttons_}, {}).chips == [
        *("Number 0", "Number 1", "Number 2"),
        "+7",
    ]


def test_every_format_channel_and_comparison_has_words() -> None:
    assert set(FORMATS) == {*READERS, CHOICE}
    assert all(kind.in_words for kind in CHANNELS.values() if not isinstance(kind, Wire))
    assert set(plain_words.COMPARISONS) == set(comparisons.COMPARISONS)
    assert set(plain_words._AGO) == set(comparisons.ORDERED)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name.endswith("Trigger")])
def test_every_sort_of_trigger_has_words(name: str) -> None:
    given = SCHEMAS[name]["example"]

    assert "not complete" not in plain_words.trigger({**given, "if": IS_VIP}, NAMES)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"event": "tag.added", "tag": "vip"}, "The contact gets the tag “vip”"),
        ({"event": "message.received", "also_replies": True}, "The contact writes, replies too"),
        ({"before": "booking.starts_at", "seconds": 86_400}, "1 day before a booking begins"),
        (
            {"date": "contact.custom_fields.birthday", "every": "year", "at": "09:00", "offset_days": -3},
            "3 days before the day in “birthday”, at 09:00, every year",
        ),
        ({"segment_id": "seg_01kaj5bd40e6rr3f5y2kq0w9xz", "every": "entry"}, "The contact enters “Regulars”"),
        (
            {"segment_id": "seg_01kaj5bd40e6rr3f5y2kq0w9xz", "every": "week", "on": "monday", "at": "09:00"},
            "Every week on Monday at 09:00, for each contact in “Regulars”",
        ),
        ({}, "Something that is not complete"),
        ({"event": "sale.recorded", "if": {"all": 3}}, "Something that is not complete"),
    ],
)
def test_triggers_read_as_sentences(given: dict[str, Any], said: str) -> None:
    assert plain_words.trigger(given, NAMES) == said


def test_a_goal_says_how_long_it_may_take() -> None:
    assert (
        plain_words.goal({"event": "sale.recorded", "within_seconds": 604_800}) == "A sale is recorded, within 7 days"
    )
