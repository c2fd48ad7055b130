"""Receipts: statuses only rise, however late or often a receipt comes, and one settles what was unknown."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from app.database import rows
from app.lib import ids
from app.models.channels import Channel
from app.models.conversations import Message
from tests.arriving import arrive, make_post, receipt, received
from tests.cast import elsewhere, event_bodies, event_kinds, one


@pytest.fixture
def channel(workspace_id: str) -> Channel:
    made = make_post(workspace_id)
    arrive(made, received("Hi"))
    return made


def put_out(channel: Channel, status: str = "sent", provider_id: str | None = "out-1") -> str:
    """A message to the contact, with this status."""
    message_id = ids.new("msg")
    [(talk, contact)] = rows("SELECT id, contact_id FROM conversations")
    rows(
        """
        INSERT INTO messages (
            id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status, author, provider_id)
        VALUES (%s, %s, %s, %s, %s, 'out', 'Hello', %s, '{"type": "api", "id": "tok_1"}', %s)
        """,
        (message_id, channel.workspace_id, talk, contact, channel.id, status, provider_id),
    )
    return message_id


def status() -> Any:
    return one("SELECT status FROM messages WHERE direction = 'out'")


@pytest.mark.parametrize("order", list(permutations(["sent", "delivered", "read"])))
def test_in_whatever_order_receipts_come_the_last_status_stays(channel: Channel, order: tuple[str, ...]) -> None:
    put_out(channel, "sending")

    arrive(channel, *map(receipt, order))

    assert status() == "read"
    kinds = [kind for kind in event_kinds(channel.workspace_id) if kind.startswith("message.")]
    assert kinds[-1] == "message.read"
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize(
    ("was", "says", "is_then"),
    [
        ("unknown", "sent", "sent"),
        ("unknown", "failed", "failed"),
        ("queued", "delivered", "delivered"),
        ("sent", "failed", "failed"),
        ("failed", "sent", "failed"),
        ("failed", "delivered", "delivered"),
        ("delivered", "failed", "delivered"),
        ("read", "delivered", "read"),
    ],
)
def test_a_status_only_rises(channel: Channel, was: str, says: str, is_then: str) -> None:
    put_out(channel, was)

    arrive(channel, receipt(says))

    assert status() == is_then


def test_a_failure_says_why(channel: Channel) -> None:
    put_out(channel)

    arrive(channel, receipt("failed", code="131026", detail="Undeliv\0erable"))

    failure = {"code": "131026", "detail": "Undeliverable"}
    assert one("SELECT failure FROM messages WHERE direction = 'out'") == failure
    assert event_bodies(channel.workspace_id)[-1]["data"]["message"]["failure"] == failure


def test_a_receipt_settles_an_unknown_message_by_our_own_identifier(channel: Channel) -> None:
    message_id = put_out(channel, "unknown", provider_id=None)

    arrive(channel, receipt("delivered", "wamid-7", message_id=message_id))

    message = Message.get_by_id(message_id)
    assert (message.status, message.provider_id) == ("delivered", "wamid-7")


def test_the_identifier_of_another_channels_message_is_none(channel: Channel, workspace_id: str) -> None:
    message_id = put_out(channel, "unknown", provider_id=None)

    arrive(make_post(workspace_id), receipt("delivered", "wamid-7", message_id=message_id))

    assert status() == "unknown"


def test_a_receipt_for_a_message_of_the_contact_changes_nothing(channel: Channel) -> None:
    arrive(channel, receipt("read", "m-1"))

    assert one("SELECT status FROM messages") == "received"


def test_a_receipt_that_says_so_opts_the_contact_out(channel: Channel) -> None:
    put_out(channel)

    arrive(channel, receipt("failed", code="131050", is_opt_out=True))

    assert one("SELECT opted_out FROM contacts")
    assert event_bodies(channel.workspace_id)[-1]["data"]["contact"]["opted_out"]


def test_a_receipt_waits_for_nobody_who_has_the_message(channel: Channel) -> None:
    message_id = put_out(channel)

    with elsewhere(lambda: rows("SELECT 1 FROM messages WHERE id = %s FOR UPDATE", (message_id,))):
        arrive(channel, receipt("delivered"))
        assert one("SELECT due_at <= now() FROM arrivals WHERE kind = 'receipt'")
    arrive(channel)

    assert status() == "delivered"


def test_the_mail_of_a_message_stays_the_senders(channel: Channel) -> None:
    put_out(channel, "sending")
    rows(
        "UPDATE messages SET due_at = now(), leased_until = now() + interval '1 minute', claim = 3"
        " WHERE status = 'sending'"
    )

    arrive(channel, receipt("sent"))

    message = Message.get(Message.direction == "out")
    assert (message.status, message.claim) == ("sent", 3)
    assert message.due_at is not None
    assert message.leased_until is not None
