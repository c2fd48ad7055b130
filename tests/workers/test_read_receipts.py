from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app import database, mailbox
from app.database import rows
from app.domain.conversations import read_receipts
from app.models.conversations import Conversation
from tests.cast import Api, one, rung_on, until
from tests.posts import make_post, open_talk
from tests.stack.receiver import Receiver
from tests.talks import locked
from workers.request_sender import RequestSender


@pytest.fixture
def reader(empty: None, provider: Receiver) -> Iterator[RequestSender]:
    # It ends before the provider forgets what it got.
    made = RequestSender(read_receipts)
    yield made
    made.stop()
    database.database.close()


@pytest.fixture
def channel_id(api: Api, provider: Receiver) -> str:
    return make_post(api.workspace_id, read_address=provider.url("/read"))


def read(api: Api, conversation_id: str, provider_id: str = "wamid.1") -> None:
    """A member reads the conversation, whose latest message has this identifier."""
    talk = Conversation.get_by_id(conversation_id)
    rows(
        "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, status, author,"
        " provider_id) VALUES (%s, %s, %s, %s, %s, 'in', 'received', '{}', %s)",
        (f"msg_{provider_id}", talk.workspace_id, talk.id, talk.contact_id, talk.channel_id, provider_id),
    )

    def task(unit: Any, _: Any) -> None:
        read_receipts.add(unit, unit.get(Conversation, talk.workspace_id, "id", talk.id))

    locked(talk.workspace_id, talk.contact_id, task)


def left() -> int:
    return int(one("SELECT count(*) FROM read_receipts"))


def test_the_provider_is_told_the_latest_message(
    api: Api, reader: RequestSender, provider: Receiver, channel_id: str
) -> None:
    read(api, open_talk(api, channel_id))
    assert rung_on("read-receipts") == [channel_id]

    reader.wake(channel_id)
    until(lambda: left() == 0)

    assert [json.loads(received.body) for received in provider.received] == [["ada", "wamid.1"]]


def test_a_mailbox_is_emptied_with_one_bell(
    api: Api, reader: RequestSender, provider: Receiver, channel_id: str
) -> None:
    for number in range(25):
        read(api, open_talk(api, channel_id, f"peer-{number}"), f"wamid.{number}")

    reader.wake(channel_id)
    until(lambda: left() == 0)

    assert len(provider.received) == 25


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_final(api: Api, reader: RequestSender, provider: Receiver, channel_id: str, status: int) -> None:
    provider.answers["/read"] = status
    read(api, open_talk(api, channel_id))

    reader.wake(channel_id)
    until(lambda: left() == 0)

    assert len(provider.received) == 1
    assert one("SELECT state FROM channels") == "connected"


def test_a_throttle_is_tried_again_twice(api: Api, reader: RequestSender, provider: Receiver, channel_id: str) -> None:
    provider.answers["/read"] = 429
    read(api, open_talk(api, channel_id))

    for _ in range(2):
        reader.wake(channel_id)
        until(lambda: one("SELECT next_attempt_at > now() FROM read_receipts"))
        rows("UPDATE read_receipts SET next_attempt_at = now()")
        assert mailbox.wake_and_ring(read_receipts.WAITING) == 1
    reader.wake(channel_id)
    until(lambda: left() == 0)

    assert len(provider.received) == 3


def test_what_cannot_be_told_is_dropped(api: Api, reader: RequestSender, provider: Receiver, channel_id: str) -> None:
    silent = make_post(api.workspace_id)
    broken = make_post(api.workspace_id, read_address=provider.url("/read"))
    for number, each in enumerate((silent, broken)):
        read(api, open_talk(api, each), f"wamid.{number}")
    rows("UPDATE channels SET state = 'reauthorization_required' WHERE id = %s", (broken,))

    reader.wake(silent, broken)
    until(lambda: left() == 0)

    assert provider.received == []


def test_a_private_address_is_not_asked(
    api: Api, reader: RequestSender, provider: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_receipts, "PAUSES_SECONDS", ())
    channel_id = make_post(api.workspace_id, read_address="https://10.0.0.1/read")
    read(api, open_talk(api, channel_id))

    reader.wake(channel_id)
    until(lambda: left() == 0)

    assert provider.received == []


def test_what_is_left_when_it_stops_is_rung_for(api: Api, reader: RequestSender, channel_id: str) -> None:
    reader.wake()
    read(api, open_talk(api, channel_id))
    rung_on("read-receipts")
    reader.is_stopping.set()
    reader.owners.ring([channel_id])

    reader.stop()

    assert channel_id in rung_on("read-receipts")
    assert left() == 1
