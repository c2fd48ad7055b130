"""Conversations: which one is a contact's, and what opening, closing and assigning them does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app import database
from app.database import transaction
from app.domain.conversations import conversations
from app.domain.work.units import Unit
from app.errors import Invalid
from app.lib import ids
from app.models import sets
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.runs import Run
from tests.cast import Api, all_of, event_bodies, one, rung_on
from tests.talks import assign, change, close, locked, make_channel, make_member, make_run, receive, recent, undo, write

Task = Callable[[Unit, Contact], Any]


def open_on(channel_id: str) -> Task:
    return lambda unit, contact: conversations.open_on(change(unit, contact.workspace_id), contact, channel_id)


def most_recent(unit: Unit, contact: Contact) -> str | None:
    found = conversations.most_recent(unit, contact.workspace_id, contact.id)
    return found.id if found else None


def events(workspace_id: str, kind: str) -> list[dict[str, Any]]:
    return [body["data"] for body in event_bodies(workspace_id) if body["kind"] == kind]


# The most recent one


def test_a_contact_that_nobody_talked_to_has_no_conversation(workspace_id: str, contact_id: str) -> None:
    assert locked(workspace_id, contact_id, most_recent) is None


def test_the_most_recent_conversation_is_the_one_with_the_latest_message(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    older = receive(workspace_id, contact_id, channel_id).conversation_id
    newer = receive(workspace_id, contact_id, make_channel(workspace_id)).conversation_id
    assert locked(workspace_id, contact_id, most_recent) == newer != older

    receive(workspace_id, contact_id, channel_id)

    assert locked(workspace_id, contact_id, most_recent) == older


def test_a_conversation_without_messages_is_as_recent_as_its_opening(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    opened = locked(workspace_id, contact_id, open_on(make_channel(workspace_id)))

    assert locked(workspace_id, contact_id, most_recent) == opened.id


def test_a_closed_conversation_remains_the_most_recent(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    closed = close(workspace_id, contact_id)

    assert locked(workspace_id, contact_id, most_recent) == closed.id


def test_within_a_unit_the_latest_message_counts(workspace_id: str, contact_id: str, channel_id: str) -> None:
    first = locked(workspace_id, contact_id, open_on(channel_id))
    locked(workspace_id, contact_id, open_on(channel_id))

    def touch_first(unit: Unit, contact: Contact) -> str | None:
        conversations.most_recent(unit, workspace_id, contact_id)
        conversations.touch(unit, unit.get(Conversation, workspace_id, "id", first.id))
        return most_recent(unit, contact)

    assert locked(workspace_id, contact_id, touch_first) == first.id


def test_what_a_failed_task_opened_is_forgotten(workspace_id: str, contact_id: str, channel_id: str) -> None:
    def fail(unit: Unit, contact: Contact) -> str | None:
        undo(unit, lambda: open_on(channel_id)(unit, contact))
        return most_recent(unit, contact)

    assert locked(workspace_id, contact_id, fail) is None
    assert one("SELECT count(*) FROM conversations") == 0


def test_conversations_of_many_runs_are_read_at_once(
    api: Api, workspace_id: str, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contact_ids = [api.contact(external_id=str(number))["id"] for number in range(5)]
    expected = {each: receive(workspace_id, each, channel_id).conversation_id for each in contact_ids[1:]}
    own = expected[contact_ids[4]]
    receive(workspace_id, contact_ids[4], make_channel(workspace_id))
    runs = [make_run(workspace_id, each) for each in contact_ids[:4]]
    runs.append(make_run(workspace_id, contact_ids[4], conversation_id=own))
    unit, seen = Unit(), []
    with transaction():
        unit.read(sets.key(Contact, workspace_id, "id", each) for each in contact_ids)
        read = [Run.get_by_id(run_id) for run_id in runs]
        real = database.Database._execute
        monkeypatch.setattr(database.Database, "_execute", lambda *of: seen.append(of) or real(*of))
        conversations.prefetch(unit, read)
        assert len(seen) == 3
        found = {run.contact_id: conversations.of_run(unit, run) for run in read}

    assert len(seen) == 3
    assert found.pop(contact_ids[0]) is None
    assert {contact_id: conversation.id for contact_id, conversation in found.items() if conversation} == expected


# Channels


# Opening and closing


def test_opening_one_is_an_event(workspace_id: str, contact_id: str, channel_id: str) -> None:
    opened = locked(workspace_id, contact_id, open_on(channel_id))

    [event] = events(workspace_id, "conversation.opened")
    assert event["contact"]["id"] == contact_id
    assert event["conversation"] == {
        **{"id": opened.id, "contact_id": contact_id, "channel_id": channel_id, "status": "open"},
        **{"assignee_id": None, "labels": [], "snoozed_until": None, "unread": 0, "last_message_at": None},
        **{"window_ends_at": None, "referral": None, "waiting_since": None, "first_answered_at": None, "scheduled": 0},
        "created_at": event["conversation"]["created_at"],
    }


def test_a_message_reopens_the_closed_conversation_of_its_channel(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    first = receive(workspace_id, contact_id, channel_id).conversation_id
    close(workspace_id, contact_id)
    receive(workspace_id, contact_id, make_channel(workspace_id))

    assert receive(workspace_id, contact_id, channel_id).conversation_id == first
    assert one("SELECT status FROM conversations WHERE id = %s", first) == "open"
    opened = [event["conversation"]["id"] for event in events(workspace_id, "conversation.opened")]
    assert len(opened) == 3
    assert opened.count(first) == 2


def test_closing_is_an_event_once(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    close(workspace_id, contact_id)
    close(workspace_id, contact_id)

    [event] = events(workspace_id, "conversation.closed")
    assert event["conversation"]["status"] == "closed"


def test_closing_makes_the_runs_due_that_a_member_holds_there(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    elsewhere = receive(workspace_id, contact_id, make_channel(workspace_id)).conversation_id
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    write(workspace_id, contact_id, make_member(workspace_id))
    held = make_run(workspace_id, contact_id, conversation_id=conversation_id, waits_for="member", status="held")
    make_run(workspace_id, contact_id, conversation_id=elsewhere, waits_for="member", status="held")
    make_run(workspace_id, contact_id, conversation_id=conversation_id, waits_for="time")

    close(workspace_id, contact_id)

    assert all_of("SELECT id FROM runs WHERE due_at IS NOT NULL") == [held]
    assert one("SELECT held_at FROM conversations WHERE id = %s", conversation_id) is None
    assert rung_on("runs") == [workspace_id]


def test_closing_also_makes_a_run_due_that_was_held_in_the_same_unit(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    write(workspace_id, contact_id, make_member(workspace_id))
    run_id = make_run(workspace_id, contact_id)

    def hold_and_close(unit: Unit, contact: Contact) -> None:
        run = unit.get(Run, workspace_id, "id", run_id)
        held = {"status": "held", "waits_for": "member", "conversation_id": conversation_id}
        unit.put(Run(**{**run.__data__, **held}))
        conversations.close(change(unit, workspace_id), contact, recent(unit, contact))

    locked(workspace_id, contact_id, hold_and_close)

    assert all_of("SELECT id FROM runs WHERE due_at IS NOT NULL") == [run_id]


# Assigning


def test_a_conversation_is_assigned_and_unassigned(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    member_id = make_member(workspace_id)

    for assignee_id in (member_id, member_id, None, None):
        assign(workspace_id, contact_id, assignee_id)

    assigned = [event["conversation"]["assignee_id"] for event in events(workspace_id, "conversation.assigned")]
    assert assigned == [member_id, None]
    assert one("SELECT assignee_id FROM conversations") is None


def test_only_members_of_the_workspace_can_be_assigned(
    others: Api, workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    for assignee_id in (make_member(others.workspace_id), ids.new("mem")):
        with pytest.raises(Invalid, match="assignee_id: There is no such member"):
            assign(workspace_id, contact_id, assignee_id)
