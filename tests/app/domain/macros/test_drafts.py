"""Drafts: kept, emptied once they are sent, and never back."""

from __future__ import annotations

import uuid

import pytest

from app.database import rows
from app.domain.macros import drafts
from app.domain.people import members
from app.errors import Invalid
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.drafts import Draft
from tests.cast import in_threads
from tests.talks import make_channel, make_member, receive

ONE, TWO = "5220901b-b886-410f-bb63-b5a298c7a390", "e4a0d550-b67c-4fa6-8251-fbe476271f8f"


@pytest.fixture
def talk(workspace_id: str, contact_id: str) -> Conversation:
    channel_id = make_channel(workspace_id)
    return Conversation.get_by_id(receive(workspace_id, contact_id, channel_id).conversation_id)


@pytest.fixture
def ada(workspace_id: str) -> str:
    return make_member(workspace_id)


def text(talk: Conversation, member_id: str) -> str | None:
    found = Draft.of(member_id, talk.id)
    return found and found.text


def test_the_last_text_is_kept_for_each_member(talk: Conversation, ada: str, workspace_id: str) -> None:
    bob = make_member(workspace_id)

    for said in ("Hel", "Hello"):
        assert drafts.save(talk, ada, "reply", said, ONE)
    drafts.save(talk, bob, "note", "Ask Ada.", TWO)

    assert (text(talk, ada), text(talk, bob)) == ("Hello", "Ask Ada.")
    assert Draft.begun_in(ada, [talk.id]) == {talk.id}
    assert len(rows("SELECT 1 FROM drafts")) == 2


def test_what_was_sent_does_not_come_back_however_late_it_arrives(talk: Conversation, ada: str) -> None:
    drafts.save(talk, ada, "reply", "Hello", ONE)
    drafts.note_sent(talk, ada, ONE)
    drafts.note_sent(talk, ada, TWO)

    assert not drafts.save(talk, ada, "reply", "Hello", ONE)
    assert not drafts.save(talk, ada, "reply", "Hello", TWO)

    assert text(talk, ada) == ""
    assert Draft.begun_in(ada, [talk.id]) == set()


def test_a_form_that_is_sent_before_its_draft_arrives_leaves_none(talk: Conversation, ada: str) -> None:
    drafts.note_sent(talk, ada, ONE)

    assert not drafts.save(talk, ada, "reply", "Hello", ONE)

    assert text(talk, ada) == ""


def test_the_draft_of_the_next_form_stays_when_an_earlier_one_is_sent(talk: Conversation, ada: str) -> None:
    drafts.save(talk, ada, "reply", "And", TWO)
    drafts.note_sent(talk, ada, ONE)

    assert text(talk, ada) == "And"


def test_as_many_sent_forms_are_known_as_may_cross(talk: Conversation, ada: str) -> None:
    keys = [str(uuid.uuid4()) for _ in range(12)]
    for key in [*keys, keys[-1]]:
        drafts.note_sent(talk, ada, key)

    assert rows("SELECT sent_keys FROM drafts") == [(keys[-8:],)]


def test_a_member_keeps_the_latest_ones(talk: Conversation, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MOST_OF_MEMBER", 1)
    contact_id = Contact.get().id
    other = receive(talk.workspace_id, contact_id, make_channel(talk.workspace_id)).conversation_id
    drafts.save(talk, ada, "reply", "Hello", ONE)

    drafts.save(Conversation.get_by_id(other), ada, "reply", "Hi", TWO)

    assert rows("SELECT conversation_id, text FROM drafts") == [(other, "Hi")]


@pytest.mark.parametrize(
    ("kind", "said", "key"),
    [("reply", "x" * 10_001, ONE), ("reply", "a\0b", ONE), ("letter", "Hello", ONE), ("reply", "Hello", "1")],
)
def test_what_is_no_draft_is_refused(talk: Conversation, ada: str, kind: str, said: str, key: str) -> None:
    with pytest.raises(Invalid):
        drafts.save(talk, ada, kind, said, key)

    assert rows("SELECT 1 FROM drafts") == []


def test_none_is_kept_of_a_contact_that_was_deleted(talk: Conversation, ada: str) -> None:
    rows("DELETE FROM contacts")

    assert not drafts.save(talk, ada, "reply", "Hello", ONE)

    assert rows("SELECT 1 FROM drafts") == []


def test_none_is_kept_in_a_conversation_of_another_workspace(talk: Conversation, ada: str) -> None:
    elsewhere = Conversation.get_by_id(talk.id)
    elsewhere.workspace_id = "ws_other"

    assert not drafts.save(elsewhere, ada, "reply", "Hello", ONE)


def test_they_go_with_their_member(talk: Conversation, ada: str) -> None:
    drafts.save(talk, ada, "reply", "Hello", ONE)

    members.remove(talk.workspace_id, ada, None)

    assert rows("SELECT 1 FROM drafts") == []


def test_of_many_at_once_one_is_kept(talk: Conversation, ada: str) -> None:
    in_threads([lambda: drafts.save(talk, ada, "reply", "Hello", ONE)] * 5)

    assert text(talk, ada) == "Hello"


def test_an_export_has_what_was_begun_to_the_contact(talk: Conversation, ada: str, contact_id: str) -> None:
    drafts.save(talk, ada, "reply", "Hello", ONE)
    drafts.note_sent(talk, make_member(talk.workspace_id), TWO)

    [found] = drafts.of_contact(Contact.get_by_id(contact_id))

    assert (found["conversation_id"], found["member_id"], found["text"]) == (talk.id, ada, "Hello")
