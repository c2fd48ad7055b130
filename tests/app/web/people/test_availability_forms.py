"""Available or away, in the menu of one's account."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import make_channel

MINE = "SELECT availability FROM members WHERE role = 'agent'"


def press(person: Person, which: str, **options: Any) -> str:
    """Presses the button; returns what the next page says."""
    answer = person.post("availability", {"availability": which, "next": person.path("macros")}, **options)
    assert (answer.status_code, answer.location) == (303, person.path("macros"))
    return person.page("macros")


def test_an_agent_goes_away_and_comes_back(agent: Person) -> None:
    assert "Your account, </span>agent@shop.example<span" in agent.page("macros")

    said = press(agent, "away")
    assert "You are away. No channel assigns conversations by itself, so yours stay with you." in said
    assert "<span data-standing>away</span>" in said
    assert one(MINE) == "away"

    assert "You are available." in press(agent, "available")
    assert one(MINE) == "available"
    assert one("SELECT count(*) FROM audit_entries WHERE action = 'members.update'") == 2


def test_what_happens_to_conversations_is_said(agent: Person, api: Api) -> None:
    channel_id = make_channel(api.workspace_id)
    rows("""UPDATE channels SET settings = '{"assignment": "balanced"}' WHERE id = %s""", (channel_id,))

    assert "those that wait for your answer go to others" in press(agent, "away")
    assert "You are away. Your conversations stay with you." in press(agent, "break")
    assert one("SELECT detail->>'reassign' FROM audit_entries ORDER BY id DESC LIMIT 1") == "false"


def test_a_script_gets_json(agent: Person) -> None:
    answer = agent.post("availability", {"availability": "break"}, headers={"Accept": "application/json"})

    assert answer.json == {"availability": "away", "said": "You are away. Your conversations stay with you."}


@pytest.mark.parametrize("which", ["", "asleep"])
def test_another_word_is_refused(agent: Person, which: str) -> None:
    assert agent.post("availability", {"availability": which}).status_code == 409
    assert one(MINE) == "available"


def test_who_is_no_member_has_no_availability(support: Person, stranger: Person) -> None:
    assert stranger.post("availability", {"availability": "away"}).status_code == 404
    support.visit()
    assert support.post("availability", {"availability": "away"}).status_code == 409
    assert 'id="availability"' not in support.page("macros")


def test_nobody_is_led_to_another_site(agent: Person) -> None:
    answer = agent.post("availability", {"availability": "away", "next": "https://evil.example/"})

    assert answer.location == agent.path("dashboard")
