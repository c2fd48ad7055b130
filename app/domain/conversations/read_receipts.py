"""Read receipts: tell a contact, through the channel's provider, that the latest message was read. A courtesy only.

A row is mail of its channel until the provider has answered. One that cannot be sent is dropped, never shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from app import mailbox
from app.channels.base import Request
from app.database import count, database, rows
from app.domain.channels import channels
from app.domain.work.units import Unit
from app.lib import ids
from app.mailbox import Claimed, Mail, Waiting
from app.models.channels import Channel
from app.models.conversations import Conversation
from app.models.read_receipts import ReadReceipt
from app.outbound import Answer

MAIL = Mail(
    table="read_receipts",
    owner="channel_id",
    queue="read-receipts",
    carries=("conversation_id", "provider_id", "tries"),
)
WAITING = Waiting(MAIL, "next_attempt_at")

TIMEOUT_SECONDS = 10.0
LEASE_SECONDS = TIMEOUT_SECONDS + 10
# Before the second and the third attempt.
PAUSES_SECONDS = (2.0, 30.0)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed receipt with the request that sends it."""

    claimed: Claimed
    request: Request

    @property
    def tries(self) -> int:
        """How many attempts were made before."""
        return int(self.claimed.carried[2])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt. After a fault of ours the receipt waits for `pause_seconds`."""

    dispatch: Dispatch
    answer: Answer
    pause_seconds: float = 0.0

    @property
    def next_attempt_seconds(self) -> float | None:
        """In how many seconds to try again; None if the receipt was sent or is given up."""
        answer, tries = self.answer, self.dispatch.tries
        if answer.is_ours:
            return self.pause_seconds
        may_pass = answer.status is None or answer.status == 429 or answer.status >= 500
        return PAUSES_SECONDS[tries] if may_pass and tries < len(PAUSES_SECONDS) else None


def add(unit: Unit, conversation: Conversation) -> None:
    """Queues a receipt for the contact's latest message, if the provider has given it an identifier."""
    found = rows(
        """
        SELECT provider_id FROM messages
        WHERE conversation_id = %s AND direction = 'in' AND provider_id IS NOT NULL
        ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT 1
        """,
        (conversation.id,),
    )
    for (provider_id,) in found:
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


def claim(rooms: Mapping[str, int]) -> tuple[list[Dispatch], set[str]]:
    """Claims up to that many due receipts of each channel; also returns the channels that may have more.

    Drops those that cannot be sent: of channels without such receipts, or that are not connected.
    """
    claimed = mailbox.claim(MAIL, rooms, LEASE_SECONDS)
    if not claimed:
        return [], set()
    numbers = Counter(each.owner for each in claimed)
    requests = _requests(claimed)
    _drop([each for each in claimed if each.id not in requests])
    full = {owner for owner, room in rooms.items() if numbers[owner] == room}
    return [Dispatch(each, requests[each.id]) for each in claimed if each.id in requests], full


def record(outcomes: Sequence[Outcome]) -> None:
    """Drops the receipts that were sent or are given up, and puts the others off. Safe to repeat."""
    _drop([each.dispatch.claimed for each in outcomes if each.next_attempt_seconds is None])
    if again := [each for each in outcomes if each.next_attempt_seconds is not None]:
        claims = [each.dispatch.claimed for each in again]
        count(
            """
            UPDATE read_receipts receipt
            SET tries = receipt.tries + outcome.spent, due_at = NULL, leased_until = NULL,
                next_attempt_at = now() + outcome.pause * interval '1 second'
            FROM unnest(%s::text[], %s::int[], %s::int[], %s::float[]) AS outcome(id, claim, spent, pause)
            WHERE receipt.id = outcome.id AND receipt.claim = outcome.claim
            """,
            (
                [each.id for each in claims],
                [each.claim for each in claims],
                [0 if each.answer.is_ours else 1 for each in again],
                [each.next_attempt_seconds for each in again],
            ),
        )


def _requests(claimed: Sequence[Claimed]) -> dict[str, Request]:
    """The requests that send these receipts, by identifier; none for one that cannot be sent."""
    wanted = {each.owner for each in claimed}
    is_connected = (Channel.state == "connected") & Channel.deleted_at.is_null()
    accounts = {
        channel.id: (channels.kind_of(channel), channels.account_of(channel))
        for channel in Channel.select().where(Channel.id.in_(wanted), is_connected)
    }
    conversation_ids = [each.carried[0] for each in claimed]
    peers = dict(rows("SELECT id, peer FROM conversations WHERE id = ANY(%s)", (conversation_ids,)))
    requests = {}
    for each in claimed:
        conversation_id, provider_id, _ = each.carried
        if each.owner in accounts and (peer := peers.get(conversation_id)) is not None:
            kind, account = accounts[each.owner]
            request = kind.reading(account, peer, provider_id) if kind.has_provider else None
            if request is not None:
                requests[each.id] = request
    return requests


def _drop(claimed: Sequence[Claimed]) -> None:
    if claimed:
        count(
            """
            DELETE FROM read_receipts USING unnest(%s::text[], %s::int[]) AS done(id, claim)
            WHERE read_receipts.id = done.id AND read_receipts.claim = done.claim
            """,
            ([each.id for each in claimed], [each.claim for each in claimed]),
        )
