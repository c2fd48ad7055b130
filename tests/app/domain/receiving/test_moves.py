"""Contacts whose identifier at the provider changes, such as by a change of number."""

from __future__ import annotations

from typing import Any

import pytest

from app.channels.inbound import Moved
from app.database import rows
from app.domain.channels import arrivals
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation
from tests.arriving import AT, arrive, make_post, process, received
from tests.cast import Api, all_of, event_kinds, one

OLD, NEW = "4930123456", "4930654321"


@pytest.fixture
def channel(workspace_id: str) -> Channel:
    return make_post(workspace_id)


def writes(text: str, key: str, number: str) -> Any:
    return received(text, key, number, peer=number, phone=f"+{number}")


MOVED = Moved("mv1", NEW, NEW, AT, [OLD], f"+{NEW}")


def identities() -> list[Any]:
    return all_of("SELECT external_id FROM identities ORDER BY external_id")


def texts() -> list[Any]:
    return all_of("SELECT text FROM messages ORDER BY id")


def test_with_another_number_a_contact_stays_the_same_in_the_same_conversation(channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD))
    arrive(channel, MOVED)
    arrive(channel, writes("It is me", "2", NEW))

    contact, talk = Contact.get(), Conversation.get()
    assert (contact.phone, identities(), talk.peer) == (f"+{NEW}", [NEW], NEW)
    assert texts() == ["Hi", "It is me"]
    assert "contact.updated" in event_kinds(channel.workspace_id)


def test_all_of_it_may_come_at_once(channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD), MOVED, writes("It is me", "2", NEW))

    assert (one("SELECT count(*) FROM contacts"), identities()) == (1, [NEW])
    assert set(all_of("SELECT peer FROM conversations")) == {NEW}


def test_who_has_written_with_the_new_number_already_is_made_one_with_the_contact(api: Api, channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD))
    first = one("SELECT id FROM contacts")
    arrive(channel, writes("It is me", "2", NEW))
    assert one("SELECT count(*) FROM contacts") == 2

    arrive(channel, MOVED)
    arrive(channel, writes("Hello?", "3", NEW))
    api.apply()

    contact = Contact.get()
    assert (contact.id, contact.phone, identities()) == (first, f"+{NEW}", [NEW])
    assert all_of("SELECT DISTINCT contact_id FROM messages") == [first]
    assert all_of("SELECT DISTINCT peer FROM conversations") == [NEW]


def test_contacts_that_the_shop_tells_apart_stay_apart(api: Api, channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD))
    rows("UPDATE contacts SET external_id = 'customer-1'")
    api.contact(phone=f"+{NEW}", external_id="customer-2")

    arrive(channel, MOVED)

    assert one("SELECT count(*) FROM contacts") == 2
    assert all_of("SELECT reason FROM suggested_merges") == ["same_phone"]
    assert identities() == [OLD]


def test_the_next_one_to_get_the_old_number_is_somebody_else(channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD), MOVED)

    arrive(channel, writes("Hello", "2", OLD))

    assert one("SELECT count(*) FROM contacts") == 2
    assert one("SELECT count(DISTINCT conversation_id) FROM messages") == 2


def test_another_phone_of_the_contact_is_kept(channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD))
    rows("UPDATE contacts SET phone = '+33612345678'")

    arrive(channel, MOVED)

    assert (one("SELECT phone FROM contacts"), identities()) == ("+33612345678", [NEW])


def test_a_contact_is_known_by_any_of_its_former_identifiers(channel: Channel) -> None:
    arrive(channel, writes("Hi", "1", OLD))

    arrive(channel, Moved("mv1", "FR.2", NEW, AT, ["DE.1", OLD], f"+{NEW}"))

    assert (identities(), one("SELECT peer FROM conversations")) == (["FR.2"], NEW)


def test_of_somebody_unknown_nothing_is_kept(channel: Channel) -> None:
    arrive(channel, MOVED)

    assert one("SELECT count(*) FROM contacts") == 0
    assert rows("SELECT payload, due_at FROM arrivals") == [(None, None)]


def test_what_came_from_the_former_number_is_processed_first(channel: Channel) -> None:
    arrivals.store(channel, [writes("Hi", "1", OLD), MOVED])

    assert len(set(all_of("SELECT sender_key FROM arrivals"))) == 1
    while process():
        pass
    assert one("SELECT count(*) FROM contacts") == 1
