"""What the form below a conversation sends: later, with files of saved replies, and not past a colleague's answer."""

from __future__ import annotations

import io
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest

from app.database import rows
from app.lib import clock, ids
from tests.cast import Api, one
from tests.later import TOMORROW, schedule
from tests.pages import Person
from tests.talks import make_channel, make_saved_reply, receive

SCRIPT = {"headers": {"Accept": "application/json"}}


@pytest.fixture
def talk(api: Api) -> str:
    """A conversation in which the contact has written."""
    contact = api.contact(email="ada@example.com", first_name="Ada")
    return str(receive(api.workspace_id, contact["id"], make_channel(api.workspace_id), "Hello").conversation_id)


def sent() -> list[Any]:
    return [text for (text,) in rows("SELECT text FROM messages WHERE direction = 'out' ORDER BY id")]


def seen_on(page: str) -> str:
    found = re.search(r'name="seen" value="([^"]*)"', page)
    assert found
    return found[1]


def answer(person: Person, talk: str, text: str, **fields: Any) -> Any:
    return person.post(f"inbox/{talk}/write", {"kind": "reply", "text": text, **fields}, **SCRIPT)


def test_who_is_slower_of_two_is_told_before_anything_goes_out(agent: Person, owner: Person, talk: str) -> None:
    seen = seen_on(agent.page(f"inbox/{talk}"))
    assert answer(owner, talk, "You get it back.", seen=seen).status_code == 200

    once = str(uuid.uuid4())
    crossed = answer(agent, talk, "Ask Ada.", seen=seen, once=once)

    assert crossed.status_code == 409
    [newer] = crossed.json["newer"]
    assert newer["text"] == "You get it back."
    assert "Somebody else has answered" in crossed.json["errors"]["text"]
    assert sent() == ["You get it back."]
    assert answer(agent, talk, "Ask Ada.", seen=f"{seen} {newer['id']}", once=once).status_code == 200
    assert sent() == ["You get it back.", "Ask Ada."]


def test_without_the_script_the_page_shows_the_answer_and_asks(agent: Person, owner: Person, talk: str) -> None:
    seen = seen_on(agent.page(f"inbox/{talk}"))
    answer(owner, talk, "You get it back.")

    crossed = agent.post(f"inbox/{talk}/write", {"kind": "reply", "text": "Ask Ada.", "seen": seen})

    assert crossed.status_code == 409
    assert "You get it back." in crossed.text
    assert ">Send anyway</button>" in crossed.text
    assert ">Ask Ada.</textarea>" in crossed.text
    form = {"kind": "reply", "text": "Ask Ada.", "seen": seen_on(crossed.text)}
    assert agent.post(f"inbox/{talk}/write", form).status_code == 303
    assert sent() == ["You get it back.", "Ask Ada."]


def test_a_second_click_gets_the_first_answer_whoever_answered_since(agent: Person, owner: Person, talk: str) -> None:
    fields = {"seen": seen_on(agent.page(f"inbox/{talk}")), "once": str(uuid.uuid4())}
    first = answer(agent, talk, "Ask Ada.", **fields)
    answer(owner, talk, "You get it back.")

    assert answer(agent, talk, "Ask Ada.", **fields).json["id"] == first.json["id"]

    assert sent() == ["Ask Ada.", "You get it back."]


def test_neither_own_answers_nor_failed_ones_nor_the_contacts_are_asked_about(
    api: Api, agent: Person, owner: Person, talk: str
) -> None:
    seen = seen_on(agent.page(f"inbox/{talk}"))
    answer(agent, talk, "One.")
    answer(owner, talk, "Failed.")
    rows("UPDATE messages SET status = 'failed', due_at = NULL WHERE text = 'Failed.'")
    schedule(api, talk)

    assert answer(agent, talk, "Two.", seen=seen).status_code == 200


def test_notes_and_messages_for_later_go_past_an_answer(agent: Person, owner: Person, talk: str) -> None:
    seen = seen_on(agent.page(f"inbox/{talk}"))
    answer(owner, talk, "You get it back.")

    assert answer(agent, talk, "Done.", kind="note", seen=seen).status_code == 200
    assert answer(agent, talk, "All well?", later="in 2 hours", seen=seen).status_code == 200


def test_a_message_is_sent_later_in_words(agent: Person, talk: str) -> None:
    form = {"later": "tomorrow 9", "later_choice": "typed", "zone": "Europe/Berlin", "cancel_on_reply": "true"}

    shown = answer(agent, talk, "Did it arrive?", **form).json

    assert (shown["status"], shown["cancel_on_reply"]) == ("scheduled", True)
    [(send_at,)] = rows("SELECT send_at AT TIME ZONE 'Europe/Berlin' FROM messages WHERE status = 'scheduled'")
    assert (send_at.hour, send_at.minute) == (9, 0)
    page = agent.page(f"inbox/{talk}")
    assert page.count("Did it arrive?") == 2  # as a message, and in the form that changes it
    assert "unless they answer first" in page


def test_a_choice_is_as_good_as_words_and_an_answer_need_not_end_it(agent: Person, talk: str) -> None:
    answer(agent, talk, "Did it arrive?", later_choice="in 1 hour")

    [(send_at, cancels)] = rows("SELECT send_at, cancel_on_reply FROM messages WHERE status = 'scheduled'")
    assert timedelta(minutes=59) < send_at - clock.now() <= timedelta(hours=1)
    assert not cancels


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"later": "when pigs fly"}, "no time that is understood"),
        ({"later_choice": "typed"}, "no time that is understood"),
        ({"later": "in 200 days"}, "within 90 days"),
        ({"later": "2020-01-01"}, "to come"),
    ],
)
def test_a_time_that_is_none_sends_nothing(agent: Person, talk: str, fields: dict[str, str], said: str) -> None:
    refused = answer(agent, talk, "Did it arrive?", **fields)

    assert refused.status_code == 422
    assert said in refused.json["errors"]["text"]
    assert sent() == []


def file_of_a_reply(api: Api) -> str:
    """A file that a new saved reply has."""
    upload_id = ids.new("upl")
    rows(
        "INSERT INTO uploads (id, workspace_id, name, file, content_type, bytes, saved_reply_id)"
        " VALUES (%s, %s, 'terms.pdf', 'x', 'application/pdf', 3, %s)",
        (upload_id, api.workspace_id, make_saved_reply(api, "terms", "Our terms.")),
    )
    return upload_id


def test_the_files_of_a_saved_reply_go_with_the_answer(api: Api, agent: Person, talk: str) -> None:
    form = {"upload_id": file_of_a_reply(api)}

    assert answer(agent, talk, "", **form).status_code == 200

    [(attachments,)] = rows("SELECT attachments FROM messages WHERE direction = 'out'")
    assert [each["name"] for each in attachments] == ["terms.pdf"]


def test_with_a_file_of_ones_own_it_may_be_too_many(api: Api, agent: Person, talk: str) -> None:
    form = {"upload_id": file_of_a_reply(api), "files": (io.BytesIO(b"%PDF-1.7 a"), "own.pdf")}

    assert "at most one file" in answer(agent, talk, "", **form).json["errors"]["text"]
    assert sent() == []


def test_a_file_that_there_is_not_is_refused(agent: Person, talk: str) -> None:
    assert answer(agent, talk, "See this", upload_id="upl_01kaj5bd40e6rr3f5y2kq0w9xz").status_code == 422
    assert sent() == []


def test_what_is_sent_empties_its_draft_and_what_is_refused_keeps_it(agent: Person, owner: Person, talk: str) -> None:
    once, page = str(uuid.uuid4()), f"inbox/{talk}/draft"
    assert agent.post(page, {"kind": "reply", "text": "Ask Ada.", "key": once}).json == {"is_kept": True}
    shown = agent.page(f"inbox/{talk}")
    assert ">Ask Ada.</textarea>" in shown
    assert f'name="once" value="{once}"' in shown
    assert ">Draft</span>" in shown
    assert ">Draft</span>" not in owner.page("inbox")

    answer(agent, talk, "x" * 4_097, once=once)
    assert one("SELECT text FROM drafts") == "Ask Ada."
    answer(owner, talk, "You get it back.")
    answer(agent, talk, "Ask Ada.", once=once, seen="")
    assert one("SELECT text FROM drafts WHERE sent_keys = '{}'") == "Ask Ada."

    answer(agent, talk, "Ask Ada.", once=once)
    assert agent.post(page, {"kind": "reply", "text": "Ask Ada.", "key": once}).json == {"is_kept": False}
    shown = agent.page(f"inbox/{talk}")
    assert ">Ask Ada.</textarea>" not in shown
    assert ">Draft</span>" not in shown


def test_a_draft_that_is_none_is_refused(agent: Person, talk: str) -> None:
    form = {"kind": "reply", "text": "x" * 10_001, "key": str(uuid.uuid4())}

    assert agent.post(f"inbox/{talk}/draft", form).status_code == 422


def test_times_of_the_page_are_those_of_later(api: Api, agent: Person, talk: str) -> None:
    schedule(api, talk)

    assert f'<time datetime="{TOMORROW:%Y-%m-%dT%H:%M:%S}' in agent.page(f"inbox/{talk}")
