from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain import writes
from app.domain.conversations import channel_closings
from app.lib import ids
from tests import playing, talks
from tests.cast import Api, accept, all_of, elsewhere, event_bodies, event_kinds, one
from tests.playing import Provider, ask_providers, connected


@pytest.fixture(autouse=True)
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    playing.install(monkeypatch)


@pytest.fixture
def channel_id(api: Api) -> str:
    return connected(api.workspace_id)


def conversation(api: Api, channel_id: str) -> tuple[str, str]:
    """Someone new writes; returns contact and conversation."""
    contact_id = api.contact(external_id=ids.new("con"))["id"]
    return contact_id, str(talks.receive(api.workspace_id, contact_id, channel_id).conversation_id)


def waiting(api: Api, channel_id: str, talk: tuple[str, str], **columns: Any) -> str:
    """A message that waits to go out."""
    message_id, (contact_id, conversation_id) = ids.new("msg"), talk
    values = {"status": "queued", "leased_until": None, "is_behind": False} | columns
    rows(
        """
        INSERT INTO messages (
            id, workspace_id, conversation_id, contact_id, channel_id, direction, text, author, status, leased_until,
            is_behind, due_at)
        VALUES (
            %(id)s, %(workspace)s, %(conversation)s, %(contact)s, %(channel)s, 'out', 'Hello',
            '{"type": "api", "id": "tok_1"}', %(status)s, %(leased_until)s, %(is_behind)s,
            CASE WHEN NOT %(is_behind)s THEN now() END)
        """,
        {"id": message_id, "workspace": api.workspace_id, "conversation": conversation_id, "contact": contact_id}
        | {"channel": channel_id, **values},
    )
    return message_id


def delete(api: Api, channel_id: str) -> None:
    accept(api.workspace_id, "channels.delete", {}, channel_id)
    api.apply()


def failed(message_id: str) -> tuple[Any, ...]:
    return rows("SELECT status, failure->>'code', due_at IS NULL FROM messages WHERE id = %s", (message_id,))[0]


def test_deleting_a_channel_closes_its_conversations_and_no_others(api: Api, channel_id: str) -> None:
    other_channel_id = connected(api.workspace_id, "2:abc")
    mine, other = conversation(api, channel_id), conversation(api, other_channel_id)

    delete(api, channel_id)

    found = dict(rows("SELECT id, status FROM conversations"))
    assert found == {mine[1]: "closed", other[1]: "open"}
    assert event_kinds(api.workspace_id)[-1] == "conversation.closed"


def test_conversations_are_closed_in_parts(api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_closings, "PART", 2)
    talks_of_it = [conversation(api, channel_id) for _ in range(5)]

    delete(api, channel_id)

    assert len(talks_of_it) == one("SELECT count(*) FROM conversations WHERE status = 'closed'")
    assert all_of("SELECT status FROM jobs WHERE kind = 'channels.delete'") == ["succeeded"]


def test_a_conversation_whose_contact_is_locked_is_closed_later(api: Api, channel_id: str) -> None:
    talk = conversation(api, channel_id)
    accept(api.workspace_id, "channels.delete", {}, channel_id)

    with elsewhere(lambda: rows("SELECT 1 FROM contacts WHERE id = %s FOR UPDATE", (talk[0],))):
        writes.work(api.workspace_id)
        during = one("SELECT status FROM conversations")
    api.apply()

    assert (during, one("SELECT status FROM conversations")) == ("open", "closed")


def test_messages_that_wait_fail_and_are_reported(api: Api, channel_id: str) -> None:
    message_id = waiting(api, channel_id, conversation(api, channel_id))
    delete(api, channel_id)

    ended = channel_closings.end_waiting()

    assert ended == 1
    assert failed(message_id) == ("failed", "channel_deleted", True)
    body = event_bodies(api.workspace_id)[-1]
    assert (body["kind"], body["data"]["message"]["id"]) == ("message.failed", message_id)
    assert body["data"]["message"]["failure"]["code"] == "channel_deleted"
    assert channel_closings.end_waiting() == 0


def test_messages_behind_others_fail_with_them_in_parts(api: Api, channel_id: str) -> None:
    talk = conversation(api, channel_id)
    message_ids = [waiting(api, channel_id, talk, is_behind=number > 0) for number in range(4)]
    delete(api, channel_id)

    parts = [channel_closings.end_waiting(limit=3) for _ in range(3)]

    assert parts == [3, 1, 0]
    assert [failed(message_id)[0] for message_id in message_ids] == ["failed"] * 4
    assert one("SELECT count(*) FROM messages WHERE is_behind") == 0


def test_messages_of_other_channels_wait_on(api: Api, channel_id: str) -> None:
    other_channel_id = connected(api.workspace_id, "2:abc")
    message_id = waiting(api, other_channel_id, conversation(api, other_channel_id))
    delete(api, channel_id)

    channel_closings.end_waiting()

    assert failed(message_id) == ("queued", None, False)


def test_a_message_under_way_is_left_to_its_worker(api: Api, channel_id: str) -> None:
    talk = conversation(api, channel_id)
    under_way = waiting(api, channel_id, talk, status="sending", leased_until="2999-01-01T00:00:00Z")
    delete(api, channel_id)

    channel_closings.end_waiting()

    assert failed(under_way) == ("sending", None, False)


def test_it_is_unknown_what_became_of_a_message_whose_worker_died(api: Api, channel_id: str) -> None:
    talk = conversation(api, channel_id)
    abandoned = waiting(api, channel_id, talk, status="sending", leased_until="2026-01-01T00:00:00Z")
    delete(api, channel_id)

    channel_closings.end_waiting()

    assert failed(abandoned) == ("unknown", "channel_deleted", True)
    assert "message.failed" not in event_kinds(api.workspace_id)


def test_a_message_that_a_receipt_reported_as_delivered_stays_so(api: Api, channel_id: str) -> None:
    talk = conversation(api, channel_id)
    delivered = waiting(api, channel_id, talk, status="delivered", leased_until="2026-01-01T00:00:00Z")
    delete(api, channel_id)

    channel_closings.end_waiting()

    assert failed(delivered) == ("delivered", None, True)
    assert not {"message.failed", "message.delivered"} & {*event_kinds(api.workspace_id)}


def test_files_that_were_to_be_fetched_are_given_up(api: Api, channel_id: str) -> None:
    rows(
        "INSERT INTO uploads (id, workspace_id, channel_id, due_at) VALUES (%s, %s, %s, now())",
        (ids.new("upl"), api.workspace_id, channel_id),
    )
    delete(api, channel_id)

    channel_closings.end_waiting()

    assert rows("SELECT problem, due_at FROM uploads") == [("channel_deleted", None)]


def test_a_deleted_channel_can_be_connected_again_as_a_new_one(api: Api, channel_id: str) -> None:
    delete(api, channel_id)
    ask_providers(api.workspace_id, Provider())

    again = connected(api.workspace_id)

    assert playing.state(again) == ("connected", None)


def test_the_deletion_is_in_the_audit_log_without_credentials(api: Api, channel_id: str) -> None:
    delete(api, channel_id)

    entries = rows("SELECT action, target_id, detail FROM audit_entries ORDER BY id")
    assert entries == [
        ("channels.create", channel_id, {"kind": "played", "name": "Shop", "settings": {}}),
        ("channels.delete", channel_id, {"kind": "played", "name": "Shop"}),
    ]
