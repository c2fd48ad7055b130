"""Channel connections: asks providers to connect channels or to disconnect them, and records their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog
from cryptography.fernet import InvalidToken

from app import mailbox
from app.channels.base import Outcome, Request, Verdict
from app.channels.kinds import KINDS
from app.database import count, rows, transaction
from app.domain.channels import channels, outboxes
from app.domain.channels.channel_requests import MAIL
from app.mailbox import Claimed
from app.models.channels import Channel
from app.outbound import Answer

log = structlog.get_logger(__name__)

Ask = Callable[[Request], Answer]

# Bytes kept of an answer.
MOST_BYTES = 65_536
TIMEOUT_SECONDS = 10.0
# Long enough for a handful of requests, each of which may wait for a connection.
LEASE_SECONDS = 90.0
# Pauses before further attempts; the last one repeats.
PAUSES_SECONDS = (1.0, 5.0, 15.0, 60.0, 300.0)
# Attempts to connect take about a day, those to disconnect a few minutes: the credentials are kept for that long.
MOST_TRIES = {"connect": 290, "disconnect": 5}
_UNREADABLE = "The stored credentials cannot be decrypted any more. Enter them again."
_IN_USE = "Another channel was connected to this account, which receives its messages since."
_OTHER_ACCOUNT = (
    "The credentials and settings are those of account {0}; this channel belongs to account {1}. Enter those of {1}"
    " again, or connect {0} as a channel of its own."
)
_NO_ANSWER = "The provider could not be reached for a day. Reauthorize the channel to try again."


@dataclass(frozen=True, slots=True)
class _Result:
    """The outcome of an attempt. `is_ours`: the fault is on our side, and no attempt was spent."""

    verdict: Verdict
    account: str | None = None
    is_ours: bool = False


def work(workspace_id: str, ask: Ask) -> None:
    """Asks providers what is due in the workspace, one channel after the other. `ask` sends a request.

    A channel whose worker dies is asked about again when the lease ends; all of it is safe to repeat.
    """
    mailbox.hear(MAIL, workspace_id)
    while claimed := mailbox.claim(MAIL, {workspace_id: 1}, LEASE_SECONDS):
        [request] = claimed
        channel = Channel.get_by_id(request.id)
        action = request.carried[0]
        result = _connect(channel, ask) if action == "connect" else _disconnect(channel, ask)
        _record(request, channel, result)
        log.info(
            "channel.asked",
            channel=channel.id,
            kind=channel.kind,
            action=action,
            outcome=result.verdict.outcome.value,
            code=result.verdict.code,
        )


def _connect(channel: Channel, ask: Ask) -> _Result:
    if (kind := KINDS.get(channel.kind)) is None:  # of a newer version, whose workers know it
        return _Result(Verdict(Outcome.LATER), is_ours=True)
    try:
        account = channels.account_of(channel)
    except InvalidToken:
        return _Result(Verdict(Outcome.UNAUTHORIZED, code="unreadable", detail=_UNREADABLE))
    answers: list[Answer] = []
    verdict, identifier = Verdict(Outcome.SENT), None
    for request in kind.connecting(account):
        answers.append(ask(request))
        verdict, identifier = kind.connected(account, answers)
        # Before the next request, which may have the other account's messages sent here.
        if identifier is not None and channel.account not in (None, identifier):
            detail = _OTHER_ACCOUNT.format(identifier, channel.account)
            return _Result(Verdict(Outcome.UNAUTHORIZED, code="other_account", detail=detail))
        if verdict.outcome is not Outcome.SENT:
            break
    return _Result(verdict, identifier, is_ours=bool(answers) and answers[-1].is_ours)


def _disconnect(channel: Channel, ask: Ask) -> _Result:
    """Any answer of the provider is good."""
    try:
        account = channels.account_of(channel)
        answers = [ask(request) for request in KINDS[channel.kind].disconnecting(account)]
    except (InvalidToken, KeyError):
        answers = []
    is_heard = all(answer.status is not None and answer.status < 500 for answer in answers)
    return _Result(Verdict(Outcome.SENT if is_heard else Outcome.LATER))


def _record(request: Claimed, channel: Channel, result: _Result) -> None:
    """Records the result, unless something else has been wanted of the channel since the claim."""
    action, _, tries = request.carried
    with transaction():
        # Channels first, and in order: the verbs lock them before the request, and two may have the same account.
        rows(
            """
            SELECT 1 FROM channels WHERE id = %s OR (kind = %s AND account = %s) ORDER BY id FOR NO KEY UPDATE
            """,
            (channel.id, channel.kind, result.account),
        )
        if not _is_still_wanted(request):
            return
        if result.verdict.outcome in (Outcome.LATER, Outcome.UNKNOWN):
            if result.is_ours or tries + 1 < MOST_TRIES[action]:
                _put_off(request, result)
                return
            result = _Result(Verdict(Outcome.FAILED, code="unreachable", detail=_NO_ANSWER))
        count("DELETE FROM channel_requests WHERE id = %s", (request.id,))
        if action == "disconnect":
            rows("UPDATE channels SET credentials = NULL, account = NULL WHERE id = %s", (channel.id,))
        else:
            _settle(channel, result)


def _is_still_wanted(request: Claimed) -> bool:
    """Whether the claim is held and the request is still the one that was made; else it is made free for the next."""
    found = rows(
        "SELECT revision FROM channel_requests WHERE id = %s AND claim = %s FOR NO KEY UPDATE",
        (request.id, request.claim),
    )
    if found and found[0][0] != request.carried[1]:
        mailbox.release(MAIL, [request])
        return False
    return bool(found)


def _put_off(request: Claimed, result: _Result) -> None:
    tries, verdict = request.carried[2], result.verdict
    pause = max(PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS) - 1)], verdict.pause_seconds)
    rows(
        """
        UPDATE channel_requests
        SET tries = tries + %s, next_attempt_at = now() + %s * interval '1 second', due_at = NULL, leased_until = NULL
        WHERE id = %s
        """,
        (0 if result.is_ours else 1, pause, request.id),
    )
    if request.carried[0] == "connect" and verdict.detail is not None:
        channels.set_state(request.id, "disconnected", {"code": "connecting", "detail": verdict.detail})


def _settle(channel: Channel, result: _Result) -> None:
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
        # Messages that have waited for the channel are sent.
        outboxes.ring_later(channel.id)


def _take_over(channel: Channel, account: str | None) -> None:
    """The provider sends what it has for an account to one address only: that of the channel connected last."""
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
