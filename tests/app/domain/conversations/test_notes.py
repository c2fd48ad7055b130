"""Notes: added in any conversation, counted, deleted, and mentioning members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import notes
from app.domain.people import members, notifications
from app.errors import Conflict
from app.lib import ids
from app.models.notes import Note
from app.models.notifications import Notification
from tests.cast import Api, accept, all_of, one
from tests.people import make_member
from tests.talks import close, locked, receive, recent

AUTOMATION = {"type": "automation", "id": "aut_1"}


@pytest.fixture
def conversation_id(workspace_id: str, contact_id: str, channel_id: str) -> str:
    return str(receive(workspace_id, contact_id, channel_id).conversation_id)


def add(workspace_id: str, contact_id: str, text: str = "Called.") -> Note:
    """An automation adds a note to the contact's latest conversation."""
    return locked(
        workspace_id, contact_id, lambda unit, contact: notes.add(unit, recent(unit, contact), text, AUTOMATION)
    )


def write(api: Api, conversation_id: str, actor_id: str | None, mentions: Sequence[str] = ()) -> dict[str, Any]:
    """Somebody adds a note; returns the problem of the job, if there is one."""
    contact_id = one("SELECT contact_id FROM conversations WHERE id = %s", conversation_id)
    payload = {"text": "Look.", "mentions": mentions, "conversation_id": conversation_id, "contact_id": contact_id}
    job = accept(api.workspace_id, "notes.create", payload, ids.new("nte"))
    rows("UPDATE jobs SET token_id = %s WHERE id = %s", (actor_id, job.id))
    api.apply()
    return dict(one("SELECT problem FROM jobs WHERE id = %s", job.id) or {})


def fill(conversation_id: str, number: int) -> None:
    """Adds this many notes to the conversation."""
    rows(
        """
        INSERT INTO notes (id, workspace_id, conversation_id, contact_id, author, text)
        SELECT 'nte_' || n, workspace_id, id, contact_id, '{}', 'Called.'
        FROM conversations CROSS JOIN generate_series(1, %s) AS n WHERE id = %s
        """,
        (number, conversation_id),
    )


def notified() -> set[str | None]:
    return set(all_of("SELECT member_id FROM notifications WHERE kind = 'mentioned'"))


def test_a_note_is_kept_with_its_author(workspace_id: str, contact_id: str, conversation_id: str) -> None:
    note = Note.get_by_id(add(workspace_id, contact_id).id)

    assert (note.conversation_id, note.contact_id, note.text) == (conversation_id, contact_id, "Called.")
    assert (note.author, note.mentions) == (AUTOMATION, [])


def test_a_closed_conversation_takes_notes_and_stays_closed(
    workspace_id: str, contact_id: str, conversation_id: str
) -> None:
    close(workspace_id, contact_id)

    add(workspace_id, contact_id)

    assert one("SELECT status FROM conversations") == "closed"
    assert one("SELECT count(*) FROM notes WHERE conversation_id = %s", conversation_id) == 1


def test_who_is_mentioned_is_notified_once_but_never_the_author(api: Api, conversation_id: str) -> None:
    ada, bob, eve = (make_member(api.workspace_id, f"{name}@example.com", "agent")[1].id for name in "abe")

    assert write(api, conversation_id, ada, [bob, ada, bob]) == {}

    assert one("SELECT mentions FROM notes") == [bob, ada]
    assert one("SELECT author FROM notes") == {"type": "member", "id": ada}
    assert notified() == {bob}
    assert [notifications.bell(each).unread for each in (ada, bob, eve)] == [0, 1, 0]


def test_a_mention_leads_to_the_conversation_and_says_nothing_of_the_contact(api: Api, conversation_id: str) -> None:
    _, bob = make_member(api.workspace_id)

    write(api, conversation_id, None, [bob.id])

    found = Notification.get(kind="mentioned")
    assert found.detail == {"note_id": one("SELECT id FROM notes"), "conversation_id": conversation_id}
    assert notifications.represent(found)["text"] == "You were mentioned in a note on a conversation."
    path = f"/workspaces/{api.workspace_id}/inbox/{conversation_id}"
    assert notifications.represent(found)["path"] == path


def test_somebody_who_is_a_member_no_more_is_not_notified(api: Api, others: Api, conversation_id: str) -> None:
    make_member(api.workspace_id)
    _, bob = make_member(api.workspace_id, "bob@example.com", "agent")
    _, stranger = make_member(others.workspace_id, "eve@example.com")
    members.remove(api.workspace_id, bob.id, None)

    write(api, conversation_id, None, [bob.id, stranger.id])

    assert notified() == set()
    assert one("SELECT count(*) FROM notes") == 1


def test_a_note_that_is_not_added_notifies_nobody(
    api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bob = make_member(api.workspace_id)
    fill(conversation_id, notes.MOST_NOTES)

    assert write(api, conversation_id, None, [bob.id])["status"] == 409

    assert notified() == set()


def test_a_conversation_has_at_most_a_thousand(api: Api, contact_id: str, conversation_id: str) -> None:
    fill(conversation_id, notes.MOST_NOTES - 1)

    first = write(api, conversation_id, None)
    second = write(api, conversation_id, None)

    assert first == {}
    assert (second["status"], second["detail"]) == (409, notes.TOO_MANY)


def test_notes_that_one_transaction_adds_and_deletes_are_counted(
    workspace_id: str, contact_id: str, conversation_id: str, api: Api
) -> None:
    fill(conversation_id, notes.MOST_NOTES)
    payload = {"text": "Look.", "conversation_id": conversation_id, "contact_id": contact_id}

    accept(workspace_id, "notes.delete", {}, "nte_1")
    made = [accept(workspace_id, "notes.create", payload, ids.new("nte")).id for _ in range(2)]
    api.apply()

    statuses = [one("SELECT status FROM jobs WHERE id = %s", each) for each in made]
    assert statuses == ["succeeded", "failed"]
    assert one("SELECT count(*) FROM notes") == notes.MOST_NOTES


def test_a_note_that_is_deleted_at_once_was_never_there(api: Api, contact_id: str, conversation_id: str) -> None:
    payload = {"text": "Look.", "conversation_id": conversation_id, "contact_id": contact_id}
    note_id = ids.new("nte")

    accept(api.workspace_id, "notes.create", payload, note_id)
    accept(api.workspace_id, "notes.delete", {}, note_id)
    api.apply()

    assert all_of("SELECT status FROM jobs WHERE resource_id = %s", note_id) == ["succeeded", "succeeded"]
    assert one("SELECT count(*) FROM notes") == 0


def test_what_a_queued_deletion_makes_room_for_is_not_refused_at_once(api: Api, conversation_id: str) -> None:
    fill(conversation_id, notes.MOST_NOTES)
    conversation = notes.Conversation.get_by_id(conversation_id)

    with pytest.raises(Conflict, match="at most 1,000 notes"):
        notes.check(conversation.workspace_id, {"conversation_id": conversation.id})
    accept(api.workspace_id, "notes.delete", {}, "nte_1")

    notes.check(conversation.workspace_id, {"conversation_id": conversation.id})


@pytest.mark.parametrize("text", ["", " \n ", "a\0b", "x" * 10_001])
def test_a_text_that_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"A note has 1 to 10,000 characters"):
        notes.read_text(text)


def test_a_text_is_kept_as_it_is() -> None:
    assert notes.read_text(" <b>Called</b>\n") == " <b>Called</b>\n"
    assert notes.read_text("x" * 10_000) == "x" * 10_000
