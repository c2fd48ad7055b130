"""Sendings: claims due messages, each with all that its provider's request needs.

A claim commits the status `sending` before a byte leaves (`message_statuses`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from cryptography.fernet import InvalidToken

from app import sql
from app.channels.base import Account, ChannelKind, Outcome, Rate, Verdict
from app.channels.kinds import KINDS
from app.database import rows
from app.domain.channels import channels
from app.domain.conversations import sending_checks
from app.domain.conversations.message_statuses import INTERRUPTED
from app.mailbox import Claimed
from app.models.channels import Channel

log = structlog.get_logger(__name__)

# The deadline of a request to a provider. A request that prepares the message may take as long again.
TIMEOUT_SECONDS = 15.0
# Long enough for both requests, a wait for a connection before each, and the recording.
LEASE_SECONDS = 2 * TIMEOUT_SECONDS + 10
# A rate is reached although clocks and busy processes are late: up to these times are caught up.
CHANNEL_SLACK_SECONDS, CONVERSATION_SLACK_SECONDS = 0.1, 0.02
# The pause after a fault that only the operator can mend.
MEND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed message. `at`: the Unix time of the claim."""

    claimed: Claimed
    conversation_id: str
    at: float
    kind: ChannelKind
    account: Account
    to: str
    text: str | None
    template: Mapping[str, Any] | None
    attachments: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Sending:
    """The outcome of a claimed message. `at`: when it was claimed to be sent; None if no request was made.

    `rate` is that of the conversation; `to` and `credentials` are those that were used.
    """

    claimed: Claimed
    conversation_id: str
    verdict: Verdict
    at: float | None = None
    rate: Rate | None = None
    to: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of a claim: messages to be sent, and those whose outcome is clear already.

    `pauses`: in how many seconds to look into a channel again, and whether nothing can be sent before; channels that
    are not in it have nothing more until their bells ring.
    """

    dispatches: Sequence[Dispatch]
    settled: Sequence[Sending]
    pauses: Mapping[str, tuple[float, bool]]


def slack_of(rate: Rate, least_seconds: float) -> float:
    """How many seconds of a rate may be caught up."""
    return max(least_seconds, (rate.burst - 1) / rate.per_second)


def claim(rooms: Mapping[str, int]) -> Batch:
    """Claims up to that many due messages of each channel, as far as its state, pause and rate allow."""
    rates = {name: kind.channel_rate for name, kind in KINDS.items() if kind.channel_rate is not None}
    found = rows(
        sql.prepared("claim_messages"),
        {
            "ids": sql.array(rooms),
            "rooms": sql.array(rooms.values()),
            "kinds": sql.array(rates),
            "rates": sql.array(rate.per_second for rate in rates.values()),
            "slacks": sql.array(slack_of(rate, CHANNEL_SLACK_SECONDS) for rate in rates.values()),
            "lease_seconds": LEASE_SECONDS,
        },
    )
    pauses = {row[1]: (row[-2], row[-1]) for row in found if row[0] is None and row[-2] is not None}
    claimed = [row[:-2] for row in found if row[0] is not None]
    accounts = _accounts({row[1] for row in claimed})
    dispatches: list[Dispatch] = []
    settled: list[Sending] = []
    for row in claimed:
        made = _made(row, accounts.get(row[1]))
        if isinstance(made, Dispatch):
            dispatches.append(made)
        else:
            settled.append(made)
    return Batch(dispatches, settled, pauses)


def _accounts(channel_ids: Collection[str]) -> dict[str, tuple[ChannelKind, Account]]:
    found = {}
    for channel in Channel.select().where(Channel.id.in_(list(channel_ids))) if channel_ids else ():
        try:
            found[channel.id] = channels.kind_of(channel), channels.account_of(channel)
        except InvalidToken:
            log.error("channel.credentials_unreadable", channel=channel.id, remedy="check SECRET_KEY")
    return found


def _made(row: Sequence[Any], found: tuple[ChannelKind, Account] | None) -> Dispatch | Sending:
    id, channel_id, number, at, is_suspect, conversation_id, text, template, attachments, *state = row
    claimed = Claimed(id, channel_id, number, is_suspect=is_suspect)
    if is_suspect:
        return Sending(claimed, conversation_id, INTERRUPTED)
    if found is None:
        pause = Verdict(Outcome.LATER, pause_seconds=MEND_SECONDS, pauses="channel")
        return Sending(claimed, conversation_id, pause)
    kind, account = found
    if (refusal := _refusal(kind, text, template, attachments, *state)) is not None:
        return Sending(claimed, conversation_id, refusal)
    return Dispatch(claimed, conversation_id, at, kind, account, state[0], text, template, attachments)


def _refusal(
    kind: ChannelKind,
    text: str | None,
    template: Mapping[str, Any] | None,
    attachments: Sequence[Mapping[str, Any]],
    peer: str | None,
    is_closed: bool,
    opted_out: bool | None,
) -> Verdict | None:
    """Why a message that was valid when queued may not be sent now."""
    if opted_out is None or not (text or template or attachments):
        return Verdict(Outcome.FAILED, code="gone", detail="The contact was deleted before the message was sent.")
    refusal = sending_checks.refusal(kind, has_template=bool(template), opted_out=opted_out, is_open=not is_closed)
    if refusal is not None:
        return refusal
    if not peer:
        return Verdict(Outcome.FAILED, code="no_address", detail="The contact has no address on this channel.")
    return None
