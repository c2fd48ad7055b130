"""Messages that are sent later, in the conversation: shown, changed, sent at once, deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.database import rows
from app.domain.conversations import scheduled_messages
from app.lib import clock
from tests.cast import Api, one
from tests.later import go, pass_time, schedule
from tests.pages import Person
from tests.talks import make_channel, receive

SCRIPT = {"headers": {"Accept": "application/json"}}


@pytest.fixture
def talk(api: Api) -> str:
    contact = api.contact(email="ada@example.com", first_name="Ada")
    return str(receive(api.workspace_id, contact["id"], make_channel(api.workspace_id), "Hello").conversation_id)


@pytest.fixture
def message(api: Api, talk: str) -> str:
    return schedule(api, talk, "Any news?")


def test_they_stand_behind_the_thread_and_not_in_it(agent: Person, talk: str, message: str) -> None:
    page = agent.page(f"inbox/{talk}")
    thread, later = page.split('id="later"')

    assert f'data-later="{message}"' in later
    assert "Any news?" not in thread
    assert f'data-later="{message}"' in agent.page(f"inbox/{talk}/later")
    go(message)
    thread, later = agent.page(f"inbox/{talk}").split('id="later"')
    assert f'id="{message}"' in thread
    assert "data-later" not in later


def test_text_and_time_are_changed(agent: Person, talk: str, message: str) -> None:
    form = {"do": "change", "text": "Has it arrived?", "until": "in 3 hours", "zone": "Asia/Tokyo"}

    assert agent.post(f"inbox/{talk}/messages/{message}/later", form).status_code == 303

    [(text, send_at)] = rows("SELECT text, send_at FROM messages WHERE id = %s", (message,))
    assert text == "Has it arrived?"
    assert timedelta(hours=2.9) < send_at - clock.now() <= timedelta(hours=3)
    assert "It is changed." in agent.page(f"inbox/{talk}")


def test_the_time_stays_if_none_is_given(agent: Person, talk: str, message: str) -> None:
    before = one("SELECT send_at FROM messages WHERE id = %s", message)

    agent.post(f"inbox/{talk}/messages/{message}/later", {"do": "change", "text": "Well?", "until": " "})

    assert rows("SELECT text, send_at FROM messages WHERE id = %s", (message,)) == [("Well?", before)]


def test_it_is_sent_at_once(agent: Person, talk: str, message: str) -> None:
    form = {"do": "now", "text": "Well?"}

    answer = agent.post(f"inbox/{talk}/messages/{message}/later", form, **SCRIPT)

    assert answer.json == {"done": "It is being sent."}
    assert one("SELECT send_at FROM messages WHERE id = %s", message) < clock.now() + timedelta(seconds=5)
    pass_time(message)
    scheduled_messages.queue_some()
    assert rows("SELECT status, text FROM messages WHERE id = %s", (message,)) == [("queued", "Well?")]


def test_it_is_deleted(agent: Person, talk: str, message: str) -> None:
    agent.post(f"inbox/{talk}/messages/{message}/later", {"do": "delete"})

    assert rows("SELECT 1 FROM messages WHERE id = %s", (message,)) == []
    assert "Any news?" not in agent.page(f"inbox/{talk}")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"do": "change", "text": " "}, "without text"),
        ({"do": "change", "text": "Well?", "until": "when pigs fly"}, "no time that is understood"),
        ({"do": "change", "text": "Well?", "until": "in 200 days"}, "within 90 days"),
        ({"do": "explode"}, "There is no such change."),
    ],
)
def test_what_is_refused_says_why(agent: Person, talk: str, message: str, form: dict[str, str], said: str) -> None:
    refused = agent.post(f"inbox/{talk}/messages/{message}/later", form, **SCRIPT)
    agent.post(f"inbox/{talk}/messages/{message}/later", form)

    assert refused.status_code == 422
    assert said in refused.json["errors"][""]
    assert said in agent.page(f"inbox/{talk}")
    assert one("SELECT text FROM messages WHERE id = %s", message) == "Any news?"


def test_one_that_has_gone_out_is_not_changed(agent: Person, talk: str, message: str) -> None:
    go(message)

    for do in ("change", "now", "delete"):
        form = {"do": do, "text": "Well?"}
        assert agent.post(f"inbox/{talk}/messages/{message}/later", form, **SCRIPT).status_code == 409

    assert one("SELECT text FROM messages WHERE id = %s", message) == "Any news?"


def test_those_of_others_are_not_there(others: Api, agent: Person, talk: str) -> None:
    contact = others.contact(email="bob@example.com")
    theirs = receive(others.workspace_id, contact["id"], make_channel(others.workspace_id)).conversation_id
    message = schedule(others, theirs)

    assert agent.post(f"inbox/{talk}/messages/{message}/later", {"do": "delete"}).status_code == 404
    assert agent.get(f"inbox/{theirs}/later").status_code == 404
