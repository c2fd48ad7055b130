"""Macros in a conversation, by one press."""

from __future__ import annotations

import pytest

from app.database import rows
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import make_channel, make_macro, receive

SCRIPT = {"headers": {"Accept": "application/json"}}


@pytest.fixture
def talk(api: Api) -> str:
    contact = api.contact(email="ada@example.com", first_name="Ada")
    return str(receive(api.workspace_id, contact["id"], make_channel(api.workspace_id), "Hello").conversation_id)


def test_one_press_takes_all_actions(api: Api, agent: Person, talk: str) -> None:
    reply = {"kind": "reply", "text": "Hello {{ contact.first_name }}, {{ member.email }}"}
    macro = make_macro(api, reply, {"kind": "assign", "assignee_id": "me"}, {"kind": "close"})
    assert f'name="macro_id" value="{macro}"' in agent.page(f"inbox/{talk}")

    assert agent.post(f"inbox/{talk}/macro", {"macro_id": macro}).status_code == 303

    member_id = one("SELECT id FROM members WHERE account_id = %s", agent.account_id)
    assert rows("SELECT status, assignee_id FROM conversations") == [("closed", member_id)]
    assert one("SELECT text FROM messages WHERE direction = 'out'") == f"Hello Ada, {agent.email}"
    assert "Refund is applied." in agent.page(f"inbox/{talk}")


def test_the_second_click_does_nothing(api: Api, agent: Person, talk: str) -> None:
    macro = make_macro(api, {"kind": "reply", "text": "Hello"})
    form = {"macro_id": macro, "once": "0b1f0ac7-1a5e-4a9e-9d3c-3d4f5f0c8f11"}

    said = [agent.post(f"inbox/{talk}/macro", form, **SCRIPT).json for _ in range(2)]

    assert said == [{"done": "Refund is applied."}] * 2
    assert len(rows("SELECT 1 FROM messages WHERE direction = 'out'")) == 1


def test_a_refusal_says_which_action_and_nothing_is_done(api: Api, agent: Person, talk: str) -> None:
    macro = make_macro(
        api, {"kind": "label", "labels": ["refund"]}, {"kind": "close"}, {"kind": "snooze", "seconds": 60}
    )

    refused = agent.post(f"inbox/{talk}/macro", {"macro_id": macro}, **SCRIPT)
    agent.post(f"inbox/{talk}/macro", {"macro_id": macro})

    assert refused.status_code == 409
    assert refused.json["errors"][""].startswith("Nothing was done. Action 3 (snooze): ")
    assert refused.json["errors"][""] in agent.page(f"inbox/{talk}")
    assert rows("SELECT status, labels FROM conversations") == [("open", [])]


def test_those_of_others_are_not_there(others: Api, agent: Person, talk: str) -> None:
    theirs = make_macro(others)

    assert theirs not in agent.page(f"inbox/{talk}")
    for form in ({"macro_id": theirs}, {}):
        refused = agent.post(f"inbox/{talk}/macro", form, **SCRIPT)
        assert refused.status_code == 422
        assert "There is no such macro." in refused.json["errors"][""]
