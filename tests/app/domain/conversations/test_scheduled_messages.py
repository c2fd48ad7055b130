"""Scheduled messages: what cancels, ends and bounds them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.database import rows
from app.domain.channels import media
from app.domain.conversations import channel_closings, scheduled_messages
from app.models.channels import Channel
from app.models.conversations import Conversation
from tests.arriving import arrive, echoed, make_post, receipt, received
from tests.cast import Api, all_of, event_bodies, event_kinds, one
from tests.later import TOMORROW, go, schedule, state
from tests.talks import close


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_post(api.workspace_id)


@pytest.fixture
def talk(channel: Channel) -> str:
    """A conversation in which the contact has written."""
    arrive(channel, received("Hi", "first"))
    return str(one("SELECT id FROM conversations"))


def counted() -> list[int]:
    return all_of("SELECT scheduled FROM conversations ORDER BY id")


def told_of(api: Api, message_id: str) -> list[str]:
    bodies = event_bodies(api.workspace_id)
    return [body["kind"] for body in bodies if body["data"].get("message", {}).get("id") == message_id]


# Replies


def test_the_contacts_next_message_cancels_it(api: Api, channel: Channel, talk: str) -> None:
    first, second, stays = schedule(api, talk), schedule(api, talk), schedule(api, talk, cancel_on_reply=False)
    assert counted() == [3]

    arrive(channel, received("Yes", "2"), received("Well", "3"))

    assert [state(each) for each in (first, second, stays)] == [
        ("failed", "replied"),
        ("failed", "replied"),
        ("scheduled", None),
    ]
    assert (counted(), told_of(api, first), told_of(api, stays)) == ([1], ["message.failed"], [])
    assert go(stays) == 1
    assert one("SELECT count(*) FROM messages WHERE send_at IS NOT NULL") == 0


def test_a_press_of_a_button_cancels_it_and_what_we_say_or_edit_does_not(api: Api, channel: Channel, talk: str) -> None:
    message_id = schedule(api, talk)

    arrive(channel, echoed(), receipt("read", "m-e1"))
    assert state(message_id) == ("scheduled", None)
    arrive(channel, received("Yes", "2", button_id="yes"))
    assert state(message_id) == ("failed", "replied")


def test_a_message_in_a_conversation_that_follows_the_closed_one_cancels_it(
    api: Api, channel: Channel, talk: str
) -> None:
    channel.settings = {"reopen": False}
    channel.save(only=[Channel.settings])
    close(api.workspace_id, Conversation.get_by_id(talk).contact_id)
    message_id = schedule(api, talk)

    arrive(channel, received("Me again", "2"))

    assert one("SELECT count(*) FROM conversations") == 2
    assert (state(message_id), counted()) == (("failed", "replied"), [0, 0])


def test_another_contacts_message_cancels_nothing(api: Api, channel: Channel, talk: str) -> None:
    message_id = schedule(api, talk)

    arrive(channel, received("Hi", "2", "eve"))

    assert state(message_id) == ("scheduled", None)


def test_an_arrival_asks_nothing_more_where_nothing_is_scheduled(
    api: Api, channel: Channel, talk: str, statements: list[str]
) -> None:
    arrive(channel, received("Yes", "2"))

    assert [each for each in statements if "cancel_on_reply" in each and "SELECT" in each.split()[:1]] == []


def test_what_the_contact_cancelled_can_be_sent_anyway(api: Api, channel: Channel, talk: str) -> None:
    rows("UPDATE conversations SET window_ends_at = now() + interval '1 day'")
    message_id = schedule(api, talk)
    arrive(channel, received("Yes", "2"))

    assert api.done(api.post(f"messages/{message_id}/resend"))["status"] == "succeeded"

    assert state(message_id) == ("queued", None)


# Ends


def test_deleting_its_channel_ends_it_in_parts(
    api: Api, channel: Channel, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_closings, "PART", 2)
    message_ids = [schedule(api, talk) for _ in range(5)]
    other = make_post(api.workspace_id)
    arrive(other, received("Hi", "other", "eve"))
    stays = schedule(api, str(one("SELECT id FROM conversations WHERE channel_id = %s", other.id)))
    close(api.workspace_id, Conversation.get_by_id(talk).contact_id)

    job = api.done(api.delete(f"channels/{channel.id}"))

    assert job["status"] == "succeeded"
    assert {state(each) for each in message_ids} == {("failed", "channel_deleted")}
    assert (state(stays), counted()) == (("scheduled", None), [0, 1])
    assert event_kinds(api.workspace_id).count("message.failed") == 5


def test_in_a_deleted_channel_it_fails_at_once(api: Api, channel: Channel, talk: str) -> None:
    api.done(api.delete(f"channels/{channel.id}"))

    assert state(schedule(api, talk)) == ("failed", "channel_deleted")
    assert counted() == [0]


def test_erasing_its_contact_ends_it_and_erases_its_text(api: Api, channel: Channel, talk: str) -> None:
    upload = media.store(api.workspace_id, "map.png", b"A file")
    message_id = schedule(api, talk, attachments=[{"upload_id": upload.id}])

    api.done(api.delete(f"contacts/{Conversation.get_by_id(talk).contact_id}"))

    assert state(message_id) == ("failed", "erased")
    assert rows("SELECT text, send_at FROM messages WHERE id = %s", (message_id,)) == [(None, None)]
    assert (counted(), all_of("SELECT id FROM uploads")) == ([0], [])


def test_a_receipt_does_not_raise_it(api: Api, channel: Channel, talk: str) -> None:
    message_id = schedule(api, talk)

    arrive(channel, receipt("read", message_id=message_id))

    assert state(message_id) == ("scheduled", None)


def test_its_files_live_until_it_goes(api: Api, talk: str) -> None:
    upload = media.store(api.workspace_id, "map.png", b"A file")
    schedule(api, talk, attachments=[{"upload_id": upload.id}])
    rows("UPDATE uploads SET created_at = now() - interval '80 days'")

    assert media.delete_expired() == 0
    assert media.load(upload.id).content == b"A file"


def test_deleting_it_deletes_its_files(api: Api, talk: str) -> None:
    upload = media.store(api.workspace_id, "map.png", b"A file")
    message_id = schedule(api, talk, attachments=[{"upload_id": upload.id}])

    assert api.done(api.delete(f"messages/{message_id}"))["status"] == "succeeded"

    assert media.delete_expired() == 1
    assert (all_of("SELECT id FROM messages WHERE direction = 'out'"), counted()) == ([], [0])


def test_it_is_not_billed_before_it_goes(api: Api, channel: Channel, talk: str) -> None:
    rows("UPDATE channels SET kind = 'web_chat'")
    message_id = schedule(api, talk)
    assert one("SELECT count(*) FROM messages WHERE sent_at IS NOT NULL") == 0

    go(message_id)

    assert one("SELECT count(*) FROM messages WHERE sent_at IS NOT NULL") == 1


# Bounds


@pytest.mark.parametrize("name", ["MOST_OF_CONVERSATION", "MOST_OF_WORKSPACE"])
def test_a_conversation_and_a_workspace_have_room_for_so_many(
    api: Api, talk: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_messages, name, 2)
    kept = schedule(api, talk)
    body = {"text": "Hello", "send_at": TOMORROW.isoformat()}
    accepted = [api.post(f"conversations/{talk}/messages", body) for _ in range(2)]
    api.apply()

    assert [api.job(each)["status"] for each in accepted] == ["succeeded", "failed"]
    assert api.job(accepted[1])["problem"]["status"] == 409
    api.done(api.delete(f"messages/{kept}"))
    schedule(api, talk)


def test_live_listeners_hear_that_it_is_made_changed_and_deleted(api: Api, talk: str) -> None:
    def heard(do: Any) -> set[str]:
        before = one("SELECT coalesce(max(id), 0) FROM updates")
        do()
        return set(all_of("SELECT kind FROM updates WHERE id > %s AND kind <> 'job'", before))

    message_id = ""

    def make() -> None:
        nonlocal message_id
        message_id = schedule(api, talk)

    assert heard(make) == {"message", "conversation"}
    later = (TOMORROW + timedelta(days=1)).isoformat()
    assert heard(lambda: api.done(api.patch(f"messages/{message_id}", {"send_at": later}))) == {"message"}
    assert heard(lambda: api.done(api.delete(f"messages/{message_id}"))) == {"conversation"}
