"""Claims due messages, each with everything that its provider's request needs.

A claim commits the status `sending` before the first byte is sent (`message_statuses`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import structlog
from cryptography.fernet import InvalidToken

from app import mailbox, sql
from app.channels.base import Account, ChannelKind, Outcome, Rate, Verdict
from app.channels.kinds import CHANNEL_KINDS
from app.database import rows
from app.domain.channels import channels, outboxes
from app.domain.conversations import sending_checks
from app.domain.conversations.message_statuses import INTERRUPTED
from app.mailbox import Claimed, Found, Pause
from app.models.channels import Channel

log = structlog.get_logger(__name__)

# The deadline of a request to a provider. A request that prepares the message may take as long again.
TIMEOUT_SECONDS = 15.0
# Long enough for both requests, a wait for a connection before each, and recording the outcome.
LEASE_SECONDS = 2 * TIMEOUT_SECONDS + 10
# How much delay is caught up, in seconds, so that late clocks and busy processes do not lower a rate.
CHANNEL_SLACK_SECONDS, CONVERSATION_SLACK_SECONDS = 0.1, 0.02
# The shortest pause of a channel that has reached its rate. Messages that fall due meanwhile are claimed together.
CLOSED_SECONDS = 0.05
# The pause after a fault that only the operator can fix.
MEND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed message. `at` is the Unix time of the claim."""

    claimed: Claimed
    conversation_id: str
    at: float
    kind: ChannelKind
    account: Account
    to: str
    text: str | None
    template: Mapping[str, Any] | None
    attachments: Sequence[Mapping[str, Any]]
    buttons: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Sending:
    """The outcome of a claimed message.

    `at`: the Unix time of the claim; None if no request was made. `rate`: the conversation's rate. `to`, `credentials`:
    as used for the request.
    """

    claimed: Claimed
    conversation_id: str
    verdict: Verdict
    at: float | None = None
    rate: Rate | None = None
    to: str | None = None
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


class _Row(NamedTuple):
    """A row of `claim_messages`. A row without an `id` says when to check the channel again."""

    id: Any
    channel_id: str
    claim: int
    at: float
    is_suspect: bool
    conversation_id: str
    text: str | None
    template: Mapping[str, Any] | None
    attachments: Sequence[Mapping[str, Any]]
    buttons: Sequence[Mapping[str, str]] | None
    peer: Any
    is_open: bool
    opted_out: bool | None
    is_answer: bool
    is_expired: bool
    seconds: Any
    is_closed: bool


def slack_of(rate: Rate, least_seconds: float) -> float:
    """Returns how many seconds of delay a rate may catch up: `least_seconds`, or more for its burst."""
    return max(least_seconds, (rate.burst - 1) / rate.per_second)


def claim(rooms: Mapping[str, int]) -> Found[Dispatch, Sending]:
    """Claims due messages, up to `rooms` of each channel, as the channel's state and rate allow.

    `settled` in the result: the outcomes of claimed messages for which no request is made.
    """
    rates = {name: kind.channel_rate for name, kind in CHANNEL_KINDS.items() if kind.channel_rate is not None}
    found = rows(
        sql.prepared("claim_messages"),
        {
            "ids": sql.array(rooms),
            "rooms": sql.array(rooms.values()),
            "starts": sql.array(mailbox.starts(outboxes.MAIL, rooms).values()),
            "kinds": sql.array(rates),
            "rates": sql.array(rate.per_second for rate in rates.values()),
            "slacks": sql.array(slack_of(rate, CHANNEL_SLACK_SECONDS) for rate in rates.values()),
            "lease_seconds": LEASE_SECONDS,
            "answer_seconds": sending_checks.ANSWERED_WITHIN.total_seconds(),
        },
    )
    read = [_Row._make(row) for row in found]
    claimed = [row for row in read if row.id is not None]
    accounts = _accounts({row.channel_id for row in claimed})
    made = [_made(row, accounts.get(row.channel_id)) for row in claimed]
    return Found(
        [each for each in made if isinstance(each, Dispatch)],
        [each for each in made if isinstance(each, Sending)],
        pauses={row.channel_id: _pause(row) for row in read if row.id is None and row.seconds is not None},
    )


def _pause(row: _Row) -> Pause:
    return Pause(max(row.seconds, CLOSED_SECONDS) if row.is_closed else row.seconds, row.is_closed)


def _accounts(channel_ids: Collection[str]) -> dict[str, tuple[ChannelKind, Account]]:
    found = {}
    for channel in Channel.select().where(Channel.id.in_(list(channel_ids))) if channel_ids else ():
        try:
            found[channel.id] = channels.kind_of(channel), channels.account_of(channel)
        except InvalidToken:
            log.error("channel.credentials_unreadable", channel=channel.id, remedy="check SECRET_KEY")
    return found


def _made(row: _Row, found: tuple[ChannelKind, Account] | None) -> Dispatch | Sending:
    claimed = Claimed(row.id, row.channel_id, row.claim, is_suspect=row.is_suspect)
    if row.is_suspect:
        return Sending(claimed, row.conversation_id, INTERRUPTED)
    if found is None:
        pause = Verdict(Outcome.LATER, pause_seconds=MEND_SECONDS, pauses="channel")
        return Sending(claimed, row.conversation_id, pause)
    kind, account = found
    if (refusal := _refusal(kind, row)) is not None:
        return Sending(claimed, row.conversation_id, refusal)
    content = (row.text, row.template, row.attachments, row.buttons or ())
    return Dispatch(claimed, row.conversation_id, row.at, kind, account, row.peer, *content)


def _refusal(kind: ChannelKind, row: _Row) -> Verdict | None:
    """Returns why a message that was valid when queued may not be sent now; None if it may."""
    if row.opted_out is None or not (row.text or row.template or row.attachments):
        return Verdict(Outcome.FAILED, code="gone", detail="The contact was deleted before the message was sent.")
    refusal = sending_checks.refusal(
        kind,
        has_template=bool(row.template),
        opted_out=row.opted_out and not row.is_answer,
        is_open=row.is_open,
        is_expired=row.is_expired,
    )
    if refusal is not None:
        return refusal
    if not row.peer:
        return sending_checks.NO_ADDRESS
    return None
