"""Saved replies while one writes: found, filled in, and inserted without the script."""

from __future__ import annotations

import pytest

from tests.cast import Api
from tests.pages import Person
from tests.talks import make_channel, make_saved_reply, receive


@pytest.fixture
def talk(api: Api) -> str:
    contact = api.contact(email="ada@example.com", first_name="Ada")
    return str(receive(api.workspace_id, contact["id"], make_channel(api.workspace_id), "Hello").conversation_id)


def test_those_that_begin_with_what_was_typed_come_first(api: Api, agent: Person, talk: str) -> None:
    make_saved_reply(api, "aaa", "About a refund.")
    make_saved_reply(api, "Refund", "Hello.")
    make_saved_reply(api, "other", "Hello.")

    found = agent.get(f"inbox/{talk}/saved-replies?q=ref").json

    assert [each["shortcut"] for each in found["data"]] == ["Refund", "aaa"]
    assert len(agent.get(f"inbox/{talk}/saved-replies").json["data"]) == 3


def test_one_is_filled_in_for_the_contact_and_the_member(api: Api, agent: Person, talk: str) -> None:
    reply = make_saved_reply(api, text="{{ contact.first_name }} {{ contact.last_name }} {{ member.email }}")

    shown = agent.get(f"inbox/{talk}/saved-replies/{reply}").json

    assert (shown["rendered"], shown["missing"]) == (f"Ada  {agent.email}", ["contact.last_name"])
    assert shown["attachments"] == []


def test_one_that_cannot_be_filled_in_says_why(api: Api, agent: Person, talk: str) -> None:
    reply = make_saved_reply(api, text="{% for i in (1..1000000) %}{{ contact.first_name }}{% endfor %}")

    refused = agent.get(f"inbox/{talk}/saved-replies/{reply}")

    assert refused.status_code == 409
    assert refused.json["errors"][""]
    form = {"kind": "reply", "text": "Hello", "insert": "true", "saved_reply_id": reply}
    assert refused.json["errors"][""] in agent.post(f"inbox/{talk}/write", form).text.replace("&#39;", "'")


def test_without_the_script_it_comes_into_the_form_behind_what_is_there(api: Api, agent: Person, talk: str) -> None:
    reply = make_saved_reply(api, text="Dear {{ contact.first_name }} {{ contact.last_name }}")
    assert f'<option value="{reply}">refund</option>' in agent.page(f"inbox/{talk}")
    form = {"kind": "reply", "text": "Hello", "insert": "true", "saved_reply_id": reply}

    shown = agent.post(f"inbox/{talk}/write", form).text

    assert ">Hello\nDear Ada </textarea>" in shown
    assert "Nothing is known for <bdi>contact.last_name</bdi>" in shown
    assert "msg_" in agent.page(f"inbox/{talk}")


def test_those_of_others_are_not_there(api: Api, others: Api, agent: Person, talk: str) -> None:
    theirs = make_saved_reply(others)

    assert agent.get(f"inbox/{talk}/saved-replies").json["data"] == []
    assert agent.get(f"inbox/{talk}/saved-replies/{theirs}").status_code == 404
    form = {"kind": "reply", "text": "Hello", "insert": "true", "saved_reply_id": theirs}
    assert agent.post(f"inbox/{talk}/write", form).status_code == 404
