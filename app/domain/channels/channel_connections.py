"""Channel connections: ask providers to connect or disconnect channels, and record the answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import structlog
from cryptography.fernet import InvalidToken

from app import mailbox
from app.channels.base import Outcome, Request, Verdict
from app.channels.kinds import CHANNEL_KINDS
from app.database import rows, transaction
from app.domain.channels import channel_requests, channels, outboxes
from app.mailbox import Claimed, Found, PutOff
from app.models.channels import Channel
from app.outbound import Answer

log = structlog.get_logger(__name__)

Asking: TypeAlias = "Generator[Request, Answer, Result]"

MAIL, WAITING = channel_requests.MAIL, channel_requests.WAITING
# The most requests in progress: in a process, and of one workspace in a process.
MOST_UNDER_WAY, MOST_EACH = 100, 1
# The most bytes kept of an answer.
MOST_BYTES = 65_536
TIMEOUT_SECONDS = 10.0
# Long enough for a handful of requests, each of which may wait for a connection.
LEASE_SECONDS = 90.0
# Pauses before further attempts; the last one repeats.
PAUSES_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0)
# Attempts to connect go on for about a day. Attempts to disconnect go on for about two minutes, and the credentials are
# kept until then.
MOST_TRIES = {"connect": 290, "disconnect": 5}
_UNREADABLE = "The stored credentials cannot be decrypted any more. Enter them again."
_IN_USE = "Another channel was connected to this account, which receives its messages since."
_OTHER_ACCOUNT = (
    "The credentials and settings are those of account {0}; this channel belongs to account {1}. Enter those of {1}"
    " again, or connect {0} as a channel of its own."
)
_NO_ANSWER = "The provider could not be reached for a day. Reauthorize the channel to try again."


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed request, and its channel."""

    claimed: Claimed
    channel: Channel


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of an attempt. `is_ours`: the fault is ours, and the attempt does not count."""

    dispatch: Dispatch
    verdict: Verdict
    account: str | None = None
    is_ours: bool = False

    @property
    def claimed(self) -> Claimed:
        """The claimed row of the request."""
        return self.dispatch.claimed


def claim(rooms: Mapping[str, int]) -> Found[Dispatch, Result]:
    """Claims due requests, up to `rooms` of each workspace.

    If a worker dies, its request is claimed again when the lease ends: all requests are safe to repeat.
    """
    claimed = mailbox.claim(MAIL, rooms, LEASE_SECONDS)
    known = {channel.id: channel for channel in Channel.select().where(Channel.id.in_([each.id for each in claimed]))}
    return Found([Dispatch(each, known[each.id]) for each in claimed], more=mailbox.may_have_more(rooms, claimed))


def asking(dispatch: Dispatch) -> Asking:
    """Yields the requests to the provider, one at a time; send each answer back into the generator."""
    return _connecting(dispatch) if dispatch.claimed.carried.action == "connect" else _disconnecting(dispatch)


def record(results: Sequence[Result]) -> list[Result]:
    """Records the outcomes of requests; returns [], as none is left for later. Safe to repeat."""
    for result in results:
        _record(result)
        log.info(
            "channel.asked",
            channel=result.claimed.id,
            kind=result.dispatch.channel.kind,
            action=result.claimed.carried.action,
            outcome=result.verdict.outcome.value,
            code=result.verdict.code,
        )
    return []


def _connecting(dispatch: Dispatch) -> Asking:
    channel = dispatch.channel
    if (kind := CHANNEL_KINDS.get(channel.kind)) is None:  # left to workers of a newer version
        return Result(dispatch, Verdict(Outcome.LATER), is_ours=True)
    try:
        account = channels.account_of(channel)
    except InvalidToken:
        return Result(dispatch, Verdict(Outcome.UNAUTHORIZED, code="unreadable", detail=_UNREADABLE))
    answers: list[Answer] = []
    verdict, identifier = Verdict(Outcome.SENT), None
    for request in kind.connecting(account):
        answers.append((yield request))
        verdict, identifier = kind.connected(account, answers)
        # Check before the next request, which may direct the other account's messages to us.
        if identifier is not None and channel.account not in (None, identifier):
            detail = _OTHER_ACCOUNT.format(identifier, channel.account)
            return Result(dispatch, Verdict(Outcome.UNAUTHORIZED, code="other_account", detail=detail))
        if verdict.outcome is not Outcome.SENT:
            break
    return Result(dispatch, verdict, identifier, is_ours=bool(answers) and answers[-1].is_ours)


def _disconnecting(dispatch: Dispatch) -> Asking:
    """Yields the requests that end the connection. Any answer below 500 counts as success."""
    answers: list[Answer] = []
    try:
        account = channels.account_of(dispatch.channel)
        for request in CHANNEL_KINDS[dispatch.channel.kind].disconnecting(account):
            answers.append((yield request))
    except (InvalidToken, KeyError):
        pass
    is_heard = all(answer.status is not None and answer.status < 500 for answer in answers)
    return Result(dispatch, Verdict(Outcome.SENT if is_heard else Outcome.LATER))


def _record(result: Result) -> None:
    """Records the result, or schedules a retry.

    Drops the result if the claim is lost, or if another request has replaced this one since.
    """
    channel, claimed = result.dispatch.channel, result.claimed
    with transaction():
        # Lock channels first, and in order: the verbs lock a channel before its request, and two channels may have the
        # same account.
        lock = "SELECT 1 FROM channels WHERE id = %s OR (kind = %s AND account = %s) ORDER BY id FOR NO KEY UPDATE"
        rows(lock, (channel.id, channel.kind, result.account))
        if not _is_still_wanted(claimed):
            return
        if result.verdict.outcome in (Outcome.LATER, Outcome.UNKNOWN):
            if result.is_ours or claimed.carried.tries + 1 < MOST_TRIES[claimed.carried.action]:
                _put_off(result)
                return
            verdict = Verdict(Outcome.FAILED, code="unreachable", detail=_NO_ANSWER)
            result = replace(result, verdict=verdict, account=None)
        mailbox.drop(MAIL, [claimed])
        if claimed.carried.action == "disconnect":
            rows("UPDATE channels SET credentials = NULL, account = NULL WHERE id = %s", (channel.id,))
        else:
            _settle(channel, result)


def _is_still_wanted(request: Claimed) -> bool:
    """Returns whether the claim is held and the request not replaced. Releases a replaced request."""
    found = rows(
        "SELECT revision FROM channel_requests WHERE id = %s AND claim = %s FOR NO KEY UPDATE",
        (request.id, request.claim),
    )
    if found and found[0][0] != request.carried.revision:
        mailbox.release(MAIL, [request])
        return False
    return bool(found)


def _put_off(result: Result) -> None:
    claimed, verdict = result.claimed, result.verdict
    pause = max(PAUSES_SECONDS[min(claimed.carried.tries, len(PAUSES_SECONDS) - 1)], verdict.pause_seconds)
    mailbox.put_off(WAITING, [PutOff(claimed, pause, is_spent=not result.is_ours)])
    connected = "SELECT 1 FROM channels WHERE id = %s AND state = 'connected'"
    if claimed.carried.action == "connect" and verdict.detail is not None and not rows(connected, (claimed.id,)):
        channels.set_state(claimed.id, "disconnected", {"code": "connecting", "detail": verdict.detail})


def _settle(channel: Channel, result: Result) -> None:
    verdict = result.verdict
    problem = {"code": verdict.code or verdict.outcome.value, "detail": verdict.detail or "The provider refused this."}
    if verdict.outcome is Outcome.UNAUTHORIZED:
        channels.require_reauthorization(channel.id, problem)
    elif verdict.outcome is Outcome.FAILED:
        channels.set_state(channel.id, "disconnected", problem)
    else:
        rows("UPDATE channels SET account = %s WHERE id = %s", (result.account, channel.id))
        channels.set_state(channel.id, "connected")
        _take_over(channel, result.account)
        # Messages that waited for the channel can be sent now.
        outboxes.ring_later(channel.id)


def _take_over(channel: Channel, account: str | None) -> None:
    """Disconnects the account's other channels: a provider sends messages only to the latest address."""
    others = rows(
        """
        SELECT id FROM channels
        WHERE kind = %s AND account = %s AND id <> %s AND deleted_at IS NULL
            AND problem->>'code' IS DISTINCT FROM 'account_in_use'
        """,
        (channel.kind, account, channel.id),
    )
    for (other_id,) in others:
        channels.set_state(other_id, "disconnected", {"code": "account_in_use", "detail": _IN_USE})
