"""Messages: what is queued, what comes in, and what a member's message does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import messages, sending_checks
from app.domain.conversations.messages import MOST_CHARACTERS
from app.domain.work.units import Unit
from app.errors import Invalid
from app.models.contacts import Contact
from app.models.conversations import Message
from tests.cast import Api, all_of, event_bodies, event_kinds, one
from tests.talks import change, close, locked, make_member, make_run, receive, recent, undo, write

AUTHOR = {"type": "automation", "id": "aut_1"}


def queue(text: str, **options: Any) -> Callable[[Unit, Contact], Message]:
    return lambda unit, contact: messages.queue(
        change(unit, contact.workspace_id), contact, recent(unit, contact), text, author=AUTHOR, **options
    )


def recently(text: str) -> Callable[[Unit, Contact], int]:
    return lambda unit, contact: sending_checks.count_recent(unit, contact.id, text)


# Out


def test_a_queued_message_is_the_conversations_last(workspace_id: str, contact_id: str, channel_id: str) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id

    queued = locked(workspace_id, contact_id, queue("Hello", template={"name": "greeting"}, run_id="run_1"))

    stored = Message.get_by_id(queued.id)
    assert (stored.conversation_id, stored.contact_id) == (conversation_id, contact_id)
    assert (stored.direction, stored.status, stored.text) == ("out", "queued", "Hello")
    assert (stored.author, stored.template, stored.run_id) == (AUTHOR, {"name": "greeting"}, "run_1")
    assert one("SELECT last_message_at FROM conversations") == stored.created_at


def test_a_queued_message_triggers_nothing(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    before = event_kinds(workspace_id)

    locked(workspace_id, contact_id, queue("Hello"))

    assert event_kinds(workspace_id) == before


def test_a_message_in_a_closed_conversation_leaves_it_closed(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    close(workspace_id, contact_id)

    locked(workspace_id, contact_id, queue("How did we do?"))

    assert one("SELECT status FROM conversations") == "closed"


def test_a_message_in_a_web_chat_without_a_visitor_fails(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    rows("UPDATE channels SET kind = 'web_chat'")

    locked(workspace_id, contact_id, queue("Is anybody there?"))

    failed = one("SELECT (status, failure->>'code')::text FROM messages WHERE direction = 'out'")
    assert failed == "(failed,no_address)"
    assert event_kinds(workspace_id)[-1] == "message.failed"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "A message without text cannot be sent."),
        (" \n\t", "A message without text cannot be sent."),
        ("\u200b\u2060 \ufeff", "A message without text cannot be sent."),
        ("x" * (MOST_CHARACTERS + 1), "A message has at most 4,096 characters; this one has 4,097."),
        ("a\0b", "A message cannot contain the character U\\+0000."),
    ],
)
def test_a_text_that_cannot_be_sent_is_refused_before_it_is_queued(
    workspace_id: str, contact_id: str, channel_id: str, text: str, sentence: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    with pytest.raises(Invalid, match=sentence):
        locked(workspace_id, contact_id, queue(text))

    assert all_of("SELECT direction FROM messages") == ["in"]


def test_a_text_as_long_as_can_be_is_queued(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    assert locked(workspace_id, contact_id, queue("ä" * MOST_CHARACTERS)).text == "ä" * MOST_CHARACTERS


# How often


def test_recent_texts_are_counted_by_contact_and_text(
    api: Api, workspace_id: str, contact_id: str, channel_id: str
) -> None:
    other_id = api.contact(external_id="eve")["id"]
    for each in (contact_id, other_id):
        receive(workspace_id, each, channel_id, "Hello")
        locked(workspace_id, each, queue("Hello"))
    locked(workspace_id, contact_id, queue("Hello"))
    locked(workspace_id, contact_id, queue("Goodbye"))

    assert locked(workspace_id, contact_id, recently("Hello")) == 2
    assert locked(workspace_id, contact_id, recently("Goodbye")) == 1
    assert locked(workspace_id, contact_id, recently("hello")) == 0
    assert locked(workspace_id, other_id, recently("Hello")) == 1


def test_texts_of_more_than_five_minutes_ago_do_not_count(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    for _ in range(2):
        locked(workspace_id, contact_id, queue("Hello"))
    rows(
        "UPDATE messages SET created_at = created_at - interval '301 seconds'"
        " WHERE id = (SELECT min(id) FROM messages WHERE direction = 'out')"
    )

    assert locked(workspace_id, contact_id, recently("Hello")) == 1


def test_texts_of_the_same_unit_count_unless_their_task_failed(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    locked(workspace_id, contact_id, queue("Hello"))

    def queue_more(unit: Unit, contact: Contact) -> int:
        queue("Hello")(unit, contact)
        undo(unit, lambda: queue("Hello")(unit, contact))
        return sending_checks.count_recent(unit, contact.id, "Hello")

    assert locked(workspace_id, contact_id, queue_more) == 2
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 2


# In


def test_a_received_message_is_an_event(workspace_id: str, contact_id: str, channel_id: str) -> None:
    received = receive(workspace_id, contact_id, channel_id, "Hi")

    assert event_kinds(workspace_id)[-2:] == ["conversation.opened", "message.received"]
    data = event_bodies(workspace_id)[-1]["data"]
    assert data["contact"]["id"] == contact_id
    assert data["conversation"]["id"] == received.conversation_id
    assert data["conversation"]["last_message_at"] == data["message"]["created_at"]
    assert data["message"] == {
        **{"id": received.id, "conversation_id": received.conversation_id, "direction": "in", "text": "Hi"},
        **{"status": "received", "failure": None, "author": {"type": "contact", "id": contact_id}},
        **{
            "attachments": [],
            "buttons": [],
            "button_id": None,
            "run_id": None,
            "expires_at": None,
            "send_at": None,
            "cancel_on_reply": False,
            "provider_payload": None,
            "data": None,
            "provider_time": None,
            "created_at": data["message"]["created_at"],
        },
    }
    assert one("SELECT run_id FROM messages WHERE id = %s", received.id) is None


# By members


def test_a_members_message_holds_the_conversation_until_it_is_closed(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    member_id = make_member(workspace_id)

    written = write(workspace_id, contact_id, member_id, "I am on it")

    assert one("SELECT author FROM messages WHERE id = %s", written.id) == {"type": "member", "id": member_id}
    assert one("SELECT held_at FROM conversations") is not None
    close(workspace_id, contact_id)
    assert one("SELECT held_at FROM conversations") is None


def test_a_members_message_reopens_a_closed_conversation(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    close(workspace_id, contact_id)

    write(workspace_id, contact_id, make_member(workspace_id))

    assert one("SELECT status FROM conversations") == "open"
    assert event_kinds(workspace_id)[-1] == "conversation.opened"


def test_a_members_next_message_holds_a_run_again_that_was_resumed(
    api: Api, workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    ours = make_run(workspace_id, contact_id, is_released=True)
    make_run(workspace_id, api.contact(external_id="eve")["id"], is_released=True)

    write(workspace_id, contact_id, make_member(workspace_id))

    assert all_of("SELECT id FROM runs WHERE NOT is_released") == [ours]
