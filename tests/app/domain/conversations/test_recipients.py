"""Where a contact that has not written yet can be written to."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import recipients
from app.domain.work.units import Unit
from app.models.contacts import Contact
from app.models.conversations import Conversation
from tests.cast import Api
from tests.talks import change, locked, make_channel, receive


def open_first(unit: Unit, contact: Contact) -> Conversation | None:
    return recipients.open_first(change(unit, contact.workspace_id), contact)


def test_it_is_the_newest_connected_channel(others: Api, workspace_id: str, contact_id: str, channel_id: str) -> None:
    newest = make_channel(workspace_id)
    make_channel(workspace_id, state="disconnected")
    make_channel(others.workspace_id)

    opened = locked(workspace_id, contact_id, open_first)

    assert opened is not None
    assert (opened.channel_id, opened.peer) == (newest, "+4930123456")


def test_channels_where_only_contacts_write_first_are_passed_over(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    for kind in ("web_chat", "telegram"):
        rows("UPDATE channels SET kind = %s WHERE id = %s", (kind, make_channel(workspace_id)))

    opened = locked(workspace_id, contact_id, open_first)

    assert opened is not None
    assert opened.channel_id == channel_id


def test_without_a_connected_channel_it_is_nowhere(others: Api, workspace_id: str, contact_id: str) -> None:
    make_channel(workspace_id, state="reauthorization_required")
    make_channel(others.workspace_id)

    assert locked(workspace_id, contact_id, open_first) is None


def test_without_a_phone_number_it_is_nowhere(workspace_id: str, contact_id: str, channel_id: str) -> None:
    rows("UPDATE contacts SET phone = NULL")

    assert locked(workspace_id, contact_id, open_first) is None


@pytest.mark.parametrize("chosen", [{"channel_id": "other"}, {"kind": "other"}])
def test_only_a_channel_that_is_chosen_is_taken(
    workspace_id: str, contact_id: str, channel_id: str, chosen: dict[str, str]
) -> None:
    newest = make_channel(workspace_id)
    written = receive(workspace_id, contact_id, newest)

    def found(unit: Unit, contact: Contact, **chosen: Any) -> tuple[str | None, str | None]:
        talk = recipients.latest(unit, contact, **{"channel_id": None, "kind": None} | chosen)
        opened = recipients.open_first(change(unit, workspace_id), contact, **chosen)
        return talk and talk.id, opened and opened.channel_id

    def with_chosen(**chosen: str) -> tuple[str | None, str | None]:
        return locked(workspace_id, contact_id, partial(found, **chosen))

    assert with_chosen(**chosen) == (None, None)
    assert with_chosen(channel_id=newest) == (written.conversation_id, newest)
    assert with_chosen(kind="test") == (written.conversation_id, newest)
    assert with_chosen(channel_id=channel_id) == (None, channel_id)
