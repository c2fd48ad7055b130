"""Whom a change of a conversation notifies, and until when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app import database
from app.database import rows
from app.domain.conversations import conversations, messages, snoozes
from app.domain.people import conversation_notifications, members, notifications
from app.domain.work.units import Unit
from app.models.contacts import Contact
from app.models.conversations import Conversation
from tests.app.domain.assignment.balancing import assign_all, make_balanced, wait_in
from tests.cast import Api, all_of, everything_stored, one
from tests.talks import add_note, assign, change, close, locked, make_channel, make_macro, make_member, receive, recent

Talk = tuple[str, str]


@pytest.fixture
def ada(api: Api) -> str:
    return make_member(api.workspace_id)


@pytest.fixture
def bob(api: Api) -> str:
    return make_member(api.workspace_id)


@pytest.fixture
def write(api: Api) -> Callable[..., str]:
    """A contact writes on the channel of the test; returns the conversation's identifier."""
    channel_id = make_channel(api.workspace_id)

    def write(contact_id: str, times: int = 1) -> str:
        for _ in range(times):
            message = receive(api.workspace_id, contact_id, channel_id)
        return str(message.conversation_id)

    return write


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(external_id="grace", first_name="Grace")["id"])


def told(kind: str = "%") -> list[tuple[str, str | None, int]]:
    """Kind, member and number of the notifications, the oldest first."""
    return rows("SELECT kind, member_id, amount FROM notifications WHERE kind LIKE %s ORDER BY id", (kind,))


def by(api: Api, member_id: str, contact_id: str, verb: Callable[..., object], *values: object) -> None:
    """The member does something with the contact's conversation."""

    def act(unit: Unit, contact: Contact) -> None:
        verb(replace(change(unit, api.workspace_id), actor_id=member_id), contact, recent(unit, contact), *values)

    locked(api.workspace_id, contact_id, act)


def test_an_assignment_is_told_to_whom_others_assign(
    api: Api, write: Callable[..., str], contact_id: str, ada: str, bob: str
) -> None:
    conversation_id = write(contact_id)
    by(api, ada, contact_id, conversations.assign, ada)
    assert told("assigned") == []

    by(api, ada, contact_id, conversations.assign, bob)
    assert told() == [("assigned", bob, 1)]

    api.done(api.patch(f"conversations/{conversation_id}", {"assignee_id": ada}))
    assert told() == [("assigned", ada, 1)]
    api.done(api.patch(f"conversations/{conversation_id}", {"assignee_id": ada}))
    assert told() == [("assigned", ada, 1)]


def test_a_macro_tells_the_assignee_unless_it_is_applied_on_their_behalf(
    api: Api, write: Callable[..., str], contact_id: str, ada: str, bob: str
) -> None:
    conversation_id = write(contact_id)
    macro_id = make_macro(api, {"kind": "assign", "assignee_id": "me"})
    path = f"conversations/{conversation_id}/macros/{macro_id}"
    assert api.done(api.post(path, {"member_id": ada}))["status"] == "succeeded"
    assert told("assigned") == []

    macro_id = make_macro(api, {"kind": "assign", "assignee_id": bob})
    api.done(api.post(f"conversations/{conversation_id}/macros/{macro_id}", {"member_id": ada}))
    assert told() == [("assigned", bob, 1)]


def test_automations_and_the_rule_tell_the_assignee(api: Api, contact_id: str, ada: str) -> None:
    channel_id = make_channel(api.workspace_id)
    receive(api.workspace_id, contact_id, channel_id)
    by(api, "", contact_id, conversations.assign, ada, {"type": "automation", "id": "aut_1"})
    assert told() == [("assigned", ada, 1)]

    close(api.workspace_id, contact_id)
    [talk] = wait_in(api, make_balanced(api.workspace_id), "x")
    assert assign_all() == 1
    assert told() == [("assigned", ada, 1)]
    assert one("SELECT conversation_id FROM notifications") == talk


def test_messages_of_one_conversation_are_one_notification_with_their_number(
    api: Api, write: Callable[..., str], contact_id: str, ada: str
) -> None:
    write(contact_id)
    by(api, ada, contact_id, conversations.assign, ada)
    conversation_id = write(contact_id, times=3)
    first = one("SELECT id FROM notifications")
    write(contact_id)

    assert told() == [("contact_wrote", ada, 4)]
    last = one("SELECT id FROM notifications")
    assert last > first
    notifications.mark_read(ada, last)
    write(contact_id, times=2)
    assert told() == [("contact_wrote", ada, 2)]
    assert notifications.bell(ada).unread == 1

    conversation_notifications.read(conversation_id, ada)
    conversation_notifications.read(conversation_id, ada)
    assert told() == []


def test_several_in_one_transaction_are_one_statement(api: Api, contact_id: str, ada: str) -> None:
    channel_id = make_channel(api.workspace_id)
    receive(api.workspace_id, contact_id, channel_id)
    assign(api.workspace_id, contact_id, ada)

    def take(unit: Unit, _: Contact) -> int:
        for _ in range(10):
            contact = unit.get(Contact, api.workspace_id, "id", contact_id)
            messages.receive(change(unit, api.workspace_id), contact, channel_id, "Hello?")
        return len(unit.changed(Conversation))

    locked(api.workspace_id, contact_id, take)

    assert told() == [("assigned", ada, 1), ("contact_wrote", ada, 10)]


def test_a_flood_writes_one_row_for_a_new_conversation_however_many_members_there_are(
    api: Api, write: Callable[..., str], contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(40):
        make_member(api.workspace_id)
    sent: list[str] = []
    run = database.database.execute_sql
    monkeypatch.setattr(database.database, "execute_sql", lambda *given: (sent.append(given[0]), run(*given))[1])

    write(contact_id, times=20)

    assert told() == [("new_conversation", None, 1)]
    assert len([each for each in sent if "INSERT INTO notifications" in each]) == 1
    assert one("SELECT count(*) FROM updates WHERE kind = 'notification'") == 1
    # The digest by e-mail is one row for each account that wants it; by default nobody does.
    assert notifications.announce() == 1
    assert one("SELECT count(*) FROM emails") == 0


@pytest.mark.parametrize("ending", ["assigned", "read", "answered", "closed"])
def test_a_conversation_is_new_until_somebody_takes_care_of_it(
    api: Api, write: Callable[..., str], contact_id: str, ada: str, ending: str
) -> None:
    conversation_id = write(contact_id)
    rows("UPDATE conversations SET unread = 1")
    assert told() == [("new_conversation", None, 1)]

    fields = {"assigned": {"assignee_id": ada}, "read": {"read": True}, "closed": {"status": "closed"}}
    if ending == "answered":
        api.done(api.post(f"conversations/{conversation_id}/messages", {"text": "Hello"}))
    else:
        api.done(api.patch(f"conversations/{conversation_id}", fields[ending]))

    assert told("new_conversation") == []


def test_what_is_closed_or_somebody_elses_is_told_no_more_but_a_mention_stays(
    api: Api, write: Callable[..., str], contact_id: str, ada: str, bob: str
) -> None:
    conversation_id = write(contact_id)
    assign(api.workspace_id, contact_id, ada)
    write(contact_id)
    add_note(api, conversation_id, mentions=[ada])
    assert [kind for kind, *_ in told()] == ["assigned", "contact_wrote", "mentioned"]

    assign(api.workspace_id, contact_id, bob)
    assert told() == [("mentioned", ada, 1), ("assigned", bob, 1)]
    close(api.workspace_id, contact_id)
    assert told() == [("mentioned", ada, 1)]


def test_a_conversation_that_wakes_is_told_unless_its_assignee_wakes_it(
    api: Api, write: Callable[..., str], contact_id: str, ada: str, bob: str
) -> None:
    conversation_id = write(contact_id)
    by(api, ada, contact_id, conversations.assign, ada)
    rows("UPDATE conversations SET snoozed_until = now()")
    assert snoozes.wake_some() == 1
    assert told() == [("woken", ada, 1)]

    conversation_notifications.read(conversation_id, ada)
    rows("UPDATE conversations SET snoozed_until = now() + interval '1 hour'")
    api.done(api.patch(f"conversations/{conversation_id}", {"snoozed_until": None}))
    api.done(api.patch(f"conversations/{conversation_id}", {"snoozed_until": None}))
    assert told() == [("woken", ada, 1)]

    conversation_notifications.read(conversation_id, ada)
    rows("UPDATE conversations SET snoozed_until = now() + interval '1 hour'")
    write(contact_id)
    assert told() == [("contact_wrote", ada, 1)]


def test_who_was_removed_is_told_nothing(api: Api, write: Callable[..., str], contact_id: str, ada: str) -> None:
    write(contact_id)
    by(api, ada, contact_id, conversations.assign, ada)
    members.remove(api.workspace_id, ada, None)

    write(contact_id)

    assert told() == []


def test_a_deleted_contact_leaves_nothing_behind(
    api: Api, write: Callable[..., str], contact_id: str, ada: str, bob: str
) -> None:
    write(contact_id)
    assign(api.workspace_id, contact_id, ada)
    write(contact_id)
    other = str(api.contact(external_id="other")["id"])
    write(other)
    assert all("Grace" not in detail for detail in all_of("SELECT detail::text FROM notifications"))

    api.done(api.delete(f"contacts/{contact_id}"))

    assert told() == [("new_conversation", None, 1)]
    assert "Grace" not in everything_stored()


def test_other_workspaces_are_told_nothing(
    api: Api, others: Api, write: Callable[..., str], contact_id: str, ada: str
) -> None:
    stranger = make_member(others.workspace_id)
    write(contact_id)
    assign(api.workspace_id, contact_id, ada)

    assert notifications.bell(ada).unread == 1
    assert notifications.bell(stranger).unread == 0
    assert all_of("SELECT workspace_id FROM notifications") == [api.workspace_id]
