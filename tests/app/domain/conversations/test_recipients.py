"""Where a contact that has not written yet can be written to."""

from __future__ import annotations

from functools import partial

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


def latest(unit: Unit, contact: Contact, channel_id: str | None = None, kind: str | None = None) -> str | None:
    found = recipients.latest(unit, contact, channel_id=channel_id, kind=kind)
    return found and found.id


def test_a_channel_can_be_chosen(workspace_id: str, contact_id: str, channel_id: str) -> None:
    newest = make_channel(workspace_id)
    written = receive(workspace_id, contact_id, newest).conversation_id

    def found(**chosen: str) -> str | None:
        return locked(workspace_id, contact_id, partial(latest, **chosen))

    assert (found(channel_id=newest), found(kind="test")) == (written, written)
    assert (found(channel_id=channel_id), found(channel_id="chn_1"), found(kind="telegram")) == (None, None, None)
    rows("UPDATE channels SET state = 'disconnected' WHERE id = %s", (newest,))
    assert found(channel_id=newest) is None


def test_a_conversation_is_opened_only_on_the_channel_that_was_chosen(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    make_channel(workspace_id)

    def opened(**chosen: str) -> str | None:
        def task(unit: Unit, contact: Contact) -> Conversation | None:
            return recipients.open_first(change(unit, workspace_id), contact, **chosen)

        made = locked(workspace_id, contact_id, task)
        return made and made.channel_id

    assert (opened(channel_id=channel_id), opened(channel_id="chn_1"), opened(kind="telegram")) == (
        channel_id,
        None,
        None,
    )
