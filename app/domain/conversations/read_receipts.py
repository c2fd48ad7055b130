"""Read receipts: tell a contact, through the provider, that the latest message was read.

A receipt that cannot be sent is dropped silently. With some providers, the contact's app waits for a receipt after a
button press. A row is its channel's mail until the provider has responded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from app import mailbox
from app.channels.base import Request
from app.database import database, rows
from app.domain.channels import channels
from app.domain.work import request_attempts
from app.domain.work.request_attempts import Dispatch, Outcome
from app.domain.work.units import Unit
from app.lib import ids
from app.mailbox import Claimed, Found, Mail, Waiting
from app.models.channels import Channel
from app.models.conversations import Conversation
from app.models.read_receipts import ReadReceipt


class Carried(NamedTuple):
    """Columns loaded with a claim. `provider_id`: of the message or press. `tries`: attempts so far."""

    conversation_id: str
    provider_id: str
    tries: int


MAIL = Mail(table="read_receipts", owner="channel_id", queue="read-receipts", carries=Carried)
WAITING = Waiting(MAIL, "next_attempt_at")

TIMEOUT_SECONDS = 10.0
LEASE_SECONDS = TIMEOUT_SECONDS + 10
# Pauses before the second and the third attempt, which is the last.
PAUSES_SECONDS = (2.0, 30.0)
# The most bytes that are read of a provider's response.
MOST_BYTES = 4_096
# The most requests in progress: in a process, and of one channel in a process.
MOST_UNDER_WAY, MOST_EACH = 100, 10


def add(unit: Unit, conversation: Conversation) -> None:
    """Queues a receipt for the contact's latest message that has a provider's identifier."""
    found = rows(
        """
        SELECT provider_id FROM messages
        WHERE conversation_id = %s AND direction = 'in' AND provider_id IS NOT NULL
        ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT 1
        """,
        (conversation.id,),
    )
    for (provider_id,) in found:
        queue(unit, conversation, provider_id)


def queue(unit: Unit, conversation: Conversation, provider_id: str) -> None:
    """Queues a receipt for the message, or the button press, with that `provider_id`."""
    receipt = ReadReceipt(
        id=ids.new("rdr"),
        workspace_id=conversation.workspace_id,
        channel_id=conversation.channel_id,
        conversation_id=conversation.id,
        provider_id=provider_id,
        due_at=unit.now,
        created_at=unit.now,
    )
    unit.append(receipt)
    database.after_commit(partial(mailbox.ring, MAIL, conversation.channel_id))


def claim(rooms: Mapping[str, int]) -> Found[Dispatch, Outcome]:
    """Claims due receipts, up to `rooms` of each channel. Drops receipts that cannot be sent.

    These are receipts of a provider without read receipts, for example, or of a channel that is not connected.
    """
    claimed = mailbox.claim(MAIL, rooms, LEASE_SECONDS)
    requests = _requests(claimed) if claimed else {}
    mailbox.drop(MAIL, [each for each in claimed if each.id not in requests])
    dispatches = [Dispatch(each, requests[each.id]) for each in claimed if each.id in requests]
    return Found(dispatches, more=mailbox.may_have_more(rooms, claimed))


def record(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Drops receipts that were sent or given up; postpones the others. Returns []. Safe to repeat."""
    final = request_attempts.put_off(WAITING, outcomes, PAUSES_SECONDS)
    mailbox.drop(MAIL, [outcome.claimed for outcome in final])
    return []


def _requests(claimed: Sequence[Claimed]) -> dict[str, Request]:
    """Returns the requests to send, by receipt. Leaves out receipts that cannot be sent."""
    wanted = {each.owner for each in claimed}
    is_connected = (Channel.state == "connected") & Channel.deleted_at.is_null()
    accounts = {
        channel.id: (channels.kind_of(channel), channels.account_of(channel))
        for channel in Channel.select().where(Channel.id.in_(wanted), is_connected)
    }
    conversation_ids = [each.carried.conversation_id for each in claimed]
    peers = dict(rows("SELECT id, peer FROM conversations WHERE id = ANY(%s)", (conversation_ids,)))
    requests = {}
    for each in claimed:
        if each.owner in accounts and (peer := peers.get(each.carried.conversation_id)) is not None:
            kind, account = accounts[each.owner]
            if kind.has_provider and (request := kind.reading(account, peer, each.carried.provider_id)) is not None:
                requests[each.id] = request
    return requests
