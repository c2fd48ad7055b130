"""What members do in a conversation: each form of the inbox, as a browser sends it and as the script does."""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from typing import Any

import pytest

from app.database import rows
from app.lib import clock
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import add_note, make_channel, receive
from tests.wires import WIRE

SCRIPT = {"headers": {"Accept": "application/json"}}


@pytest.fixture
def talk(api: Api) -> str:
    """A conversation in which the contact has written."""
    contact = api.contact(email="ada@example.com", first_name="Ada")
    return str(receive(api.workspace_id, contact["id"], make_channel(api.workspace_id), "Hello").conversation_id)


def sent() -> list[Any]:
    return [text for (text,) in rows("SELECT text FROM messages WHERE direction = 'out' ORDER BY id")]


def stored(talk: str, column: str) -> Any:
    return one(f"SELECT {column} FROM conversations WHERE id = %s", talk)


def test_an_answer_is_sent_in_the_name_of_its_member(agent: Person, talk: str) -> None:
    answer = agent.post(f"inbox/{talk}/write?view=mine", {"kind": "reply", "text": "On its way.\r\nToday."})

    assert (answer.status_code, answer.location) == (303, f"/workspaces/{agent.workspace_id}/inbox/{talk}?view=mine")
    assert sent() == ["On its way.\nToday."]
    member_id = one("SELECT id FROM members WHERE account_id = %s", agent.account_id)
    assert one("SELECT author FROM messages WHERE direction = 'out'") == {"type": "member", "id": member_id}


def test_the_script_gets_the_message_as_the_api_shows_it(api: Api, agent: Person, talk: str) -> None:
    answer = agent.post(f"inbox/{talk}/write", {"kind": "reply", "text": "On its way."}, **SCRIPT)

    assert answer.status_code == 200
    shown = api.get(f"messages/{answer.json['id']}").json["data"]
    assert (shown["text"], shown["status"]) == ("On its way.", "queued")
    assert answer.json == shown


def test_an_answer_that_is_sent_twice_goes_out_once(agent: Person, talk: str) -> None:
    form = {"kind": "reply", "text": "On its way.", "once": str(uuid.uuid4())}

    first, second = (agent.post(f"inbox/{talk}/write", form, **SCRIPT) for _ in range(2))

    assert first.json["id"] == second.json["id"]
    assert sent() == ["On its way."]


@pytest.mark.parametrize(("text", "said"), [(" ", "without text"), ("x" * 4_097, "4,097"), ("\0", "U+0000")])
def test_what_cannot_be_sent_is_said_and_kept(agent: Person, talk: str, text: str, said: str) -> None:
    form = {"kind": "reply", "text": text}

    answer = agent.post(f"inbox/{talk}/write", form)
    as_json = agent.post(f"inbox/{talk}/write", form, **SCRIPT)

    assert answer.status_code == as_json.status_code == 422
    assert said in answer.text
    assert said in as_json.json["errors"]["text"]
    assert f">{text}</textarea>" in answer.text
    assert sent() == []


def test_files_go_with_an_answer(agent: Person, talk: str) -> None:
    form = {"kind": "reply", "text": "", "files": (io.BytesIO(b"%PDF-1.7 tulips"), "tulips.pdf")}

    assert agent.post(f"inbox/{talk}/write", form, content_type="multipart/form-data").status_code == 303

    [(attachments,)] = rows("SELECT attachments FROM messages WHERE direction = 'out'")
    assert [(each["name"], each["content_type"]) for each in attachments] == [("tulips.pdf", "application/pdf")]
    assert "tulips.pdf" in agent.page(f"inbox/{talk}")


def test_a_note_with_files_is_refused(agent: Person, talk: str) -> None:
    form = {"kind": "note", "text": "See this", "files": (io.BytesIO(b"%PDF-1.7 tulips"), "tulips.pdf")}

    answer = agent.post(f"inbox/{talk}/write", form, content_type="multipart/form-data", **SCRIPT)

    assert (answer.status_code, list(answer.json["errors"])) == (422, ["files"])
    assert rows("SELECT 1 FROM notes") == []


def test_a_form_that_is_too_large_names_its_own_limit(agent: Person, talk: str) -> None:
    form = {"kind": "reply", "text": "See this", "files": (io.BytesIO(bytes(17 * 1024**2)), "film.bin")}

    answer = agent.post(f"inbox/{talk}/write", form, content_type="multipart/form-data", **SCRIPT)

    assert (answer.status_code, answer.json["detail"]) == (413, "What was sent is larger than 16 MiB.")


def test_an_empty_file_is_refused(agent: Person, talk: str) -> None:
    form = {"kind": "reply", "text": "See this", "files": (io.BytesIO(b""), "nothing.pdf")}

    answer = agent.post(f"inbox/{talk}/write", form, content_type="multipart/form-data", **SCRIPT)

    assert (answer.status_code, answer.json["errors"]) == (422, {"files": "The file is empty."})
    assert sent() == []


def test_a_note_mentions_whom_it_names(agent: Person, owner: Person, talk: str) -> None:
    form = {"kind": "note", "text": "@Owner, and @nobody: write to ada@agent.example?"}

    assert agent.post(f"inbox/{talk}/write", form).status_code == 303

    owner_id = one("SELECT id FROM members WHERE account_id = %s", owner.account_id)
    assert rows("SELECT text, mentions FROM notes") == [(form["text"], [owner_id])]
    assert rows("SELECT member_id FROM notifications WHERE kind = 'mentioned'") == [(owner_id,)]
    assert sent() == []


def test_a_name_that_nobody_has_is_said(agent: Person, owner: Person, talk: str) -> None:
    said = "Nobody here is called @nobody. That name notified nobody."
    form = {"kind": "note", "text": "@owner, @nobody and @nobody: call ada@agent.example."}

    assert agent.post(f"inbox/{talk}/write", form, **SCRIPT).json["warning"] == said
    known = agent.post(f"inbox/{talk}/write", {"kind": "note", "text": "@owner: call."}, **SCRIPT)
    assert known.json["warning"] is None
    agent.post(f"inbox/{talk}/write", form | {"once": "another-key-of-this-form"})
    assert said in agent.page(f"inbox/{talk}")


def test_a_note_is_deleted(api: Api, agent: Person, talk: str) -> None:
    note = add_note(api, talk)

    assert agent.post(f"inbox/{talk}/notes/{note}/delete").status_code == 303

    assert rows("SELECT 1 FROM notes") == []


def test_a_conversation_is_closed_and_opened(agent: Person, talk: str) -> None:
    agent.post(f"inbox/{talk}/change", {"do": "close"})
    assert stored(talk, "status") == "closed"

    agent.post(f"inbox/{talk}/change", {"do": "open"})
    assert stored(talk, "status") == "open"


def test_a_conversation_is_assigned_to_somebody_and_to_nobody(agent: Person, talk: str) -> None:
    member_id = str(one("SELECT id FROM members WHERE account_id = %s", agent.account_id))

    agent.post(f"inbox/{talk}/change", {"do": "assign", "assignee_id": member_id})
    assert stored(talk, "assignee_id") == member_id

    agent.post(f"inbox/{talk}/change", {"do": "assign", "assignee_id": ""})
    assert stored(talk, "assignee_id") is None


def test_labels_are_added_and_removed_one_by_one(agent: Person, talk: str) -> None:
    for label in ("refund", "urgent", "refund"):
        agent.post(f"inbox/{talk}/change", {"do": "label", "label": label})
    assert stored(talk, "labels") == ["refund", "urgent"]

    agent.post(f"inbox/{talk}/change", {"do": "unlabel", "label": "refund"})
    assert stored(talk, "labels") == ["urgent"]


def test_a_snooze_is_said_in_words_and_ended(agent: Person, talk: str) -> None:
    agent.post(f"inbox/{talk}/change", {"do": "snooze", "until": "in 2 hours", "zone": "no such/zone"})
    assert timedelta(hours=1.9) < stored(talk, "snoozed_until") - clock.now() <= timedelta(hours=2)

    agent.post(f"inbox/{talk}/change", {"do": "wake"})
    assert stored(talk, "snoozed_until") is None


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"do": "snooze", "until": "when pigs fly"}, "This is no time that is understood."),
        ({"do": "snooze", "until": "1" * 61}, "This is no time that is understood."),
        ({"do": "snooze", "until": "2020-01-01"}, "Give a time that is to come"),
        ({"do": "label", "label": " "}, "character"),
        ({"do": "assign", "assignee_id": "mem_01kaj5bd40e6rr3f5y2kq0w9xz"}, "member"),
        ({"do": "explode"}, "There is no such change."),
        ({}, "There is no such change."),
    ],
)
def test_a_change_that_is_refused_says_why(agent: Person, talk: str, form: dict[str, str], said: str) -> None:
    assert agent.post(f"inbox/{talk}/change", form).status_code == 303
    assert said in agent.page(f"inbox/{talk}")

    as_json = agent.post(f"inbox/{talk}/change", form, **SCRIPT)
    assert as_json.status_code == 422
    assert said in as_json.json["errors"][""]


def test_what_was_read_is_marked(agent: Person, talk: str) -> None:
    rows("UPDATE conversations SET unread = 1")

    assert agent.post(f"inbox/{talk}/change", {"do": "read"}, **SCRIPT).json == {"done": ""}

    assert stored(talk, "unread") == 0


def test_a_failed_message_is_sent_again(agent: Person, talk: str) -> None:
    agent.post(f"inbox/{talk}/write", {"kind": "reply", "text": "Hi"})
    rows("UPDATE messages SET status = 'failed', due_at = NULL WHERE direction = 'out'")
    message = str(one("SELECT id FROM messages WHERE direction = 'out'"))
    assert f"/messages/{message}/resend" in agent.page(f"inbox/{talk}")

    agent.post(f"inbox/{talk}/messages/{message}/resend")

    assert one("SELECT status FROM messages WHERE direction = 'out'") == "queued"


def test_who_types_is_told_at_once(agent: Person, talk: str) -> None:
    assert agent.post(f"inbox/{talk}/typing").status_code == 204


def test_who_else_looks_at_it_is_told(agent: Person, owner: Person, talk: str) -> None:
    owner_id = one("SELECT id FROM members WHERE account_id = %s", owner.account_id)

    assert owner.post(f"inbox/{talk}/look").json == []

    assert agent.post(f"inbox/{talk}/look").json == [{"type": "member", "id": owner_id}]


def test_beyond_the_window_a_template_goes_out(
    api: Api, agent: Person, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "window", timedelta(hours=24))
    assert "The window for free text is closed" in agent.page(f"inbox/{talk}")
    form = {"kind": "reply", "text": "", "template": "order_update", "language": "de", "parameters": "Ada\r\n42"}

    assert agent.post(f"inbox/{talk}/write", form).status_code == 303

    parameters = [{"type": "text", "text": "Ada"}, {"type": "text", "text": "42"}]
    assert one("SELECT template FROM messages WHERE direction = 'out'") == {
        "name": "order_update",
        "language": {"code": "de"},
        "components": [{"type": "body", "parameters": parameters}],
    }


@pytest.mark.parametrize(
    ("typed", "said"), [("", []), (" \r\n", []), ("Ada\r\n\r\n", ["Ada"]), ("Ada\r\n\r\n42", ["Ada", "", "42"])]
)
def test_a_blank_line_between_parameters_is_an_empty_one(agent: Person, talk: str, typed: str, said: list[str]) -> None:
    agent.post(f"inbox/{talk}/write", {"kind": "reply", "text": "", "template": "order", "parameters": typed})

    template = one("SELECT template FROM messages WHERE direction = 'out'")
    assert [each["text"] for part in template["components"] for each in part["parameters"]] == said
