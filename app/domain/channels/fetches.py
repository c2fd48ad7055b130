"""Fetches the files of inbound messages, at once: providers' links expire within minutes.

Also fetches files from other servers for messages that runs are about to send. `run_id` names the run that waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cryptography.fernet import InvalidToken

from app import bounds, logs, mailbox, metrics
from app.channels.base import Account, ChannelKind, Outcome, Request, Verdict
from app.channels.inbound import Media
from app.database import count, rows, transaction
from app.domain.channels import channels, media, stored_bytes
from app.errors import TooLarge, TooMuchStored, Unavailable
from app.mailbox import Claimed, Found, Mail, PutOff, Waiting
from app.models.channels import Channel


class Carried(NamedTuple):
    """Columns loaded with a claim. `source`: the fields of a Media. `tries`: attempts so far."""

    source: Mapping[str, Any] | None
    tries: int
    workspace_id: str
    run_id: str | None


MAIL = Mail(table="uploads", owner="channel_id", queue="fetches", carries=Carried)
WAITING = Waiting(MAIL, "next_attempt_at")

# The most bytes of a response with a file's address. The file itself may have `media.MOST_BYTES`.
MOST_BYTES = 65_536
# The most fetches of a process, and of a channel in a process: each file is in memory as a whole.
MOST_UNDER_WAY, MOST_EACH = 12, 4
# Deadlines of the request for a file's address, and of the request that fetches the file.
ASKING_SECONDS, TIMEOUT_SECONDS = 15.0, 30.0
# Both deadlines, a wait for a connection before each, and the time to store the file.
LEASE_SECONDS = ASKING_SECONDS + TIMEOUT_SECONDS + 15
# The pause before each further attempt. After the last one, the file is given up.
PAUSES_SECONDS = (1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0)
# The most further attempts for a run, which waits for five minutes at most.
MOST_TRIES_FOR_RUN = 2
TOO_LARGE = Verdict(
    Outcome.FAILED, code="too_large", detail=f"The file has more than {media.MOST_BYTES // 1024**2} MiB."
)
_NO_CHANNEL = Verdict(Outcome.FAILED, code="channel_deleted", detail="The channel was deleted before.")
_NOT_WANTED = Verdict(Outcome.FAILED, code="not_wanted", detail="The run has ended before.")
_TOO_MUCH = Verdict(Outcome.LATER, code="too_much", detail="The channel's contacts sent too much within an hour.")
_TOO_MUCH_FOR_RUNS = replace(_TOO_MUCH, detail="The workspace stored too much within an hour.")
_NO_ROOM = Verdict(Outcome.LATER, code="no_room", detail="There was no room for the file.")
_UNREADABLE = Verdict(Outcome.LATER, code="unreadable", detail="The channel's credentials could not be read.")


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A claimed file, with everything needed to fetch it."""

    claimed: Claimed
    kind: ChannelKind
    account: Account
    wanted: Media

    @property
    def located(self) -> Request | None:
        """The request for the file; None if the provider must first be asked where the file is."""
        return None if self.claimed.carried.run_id is None else Request("GET", self.wanted.ref)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome for a claimed file: its content, or why there is none.

    `is_ours`: the fault is on our side, and the attempt does not count.
    """

    claimed: Claimed
    content: bytes | None = None
    verdict: Verdict | None = None
    is_ours: bool = False
    credentials: Mapping[str, str] | None = None


def claim(rooms: Mapping[str, int]) -> Found[Dispatch, Fetched]:
    """Claims due files, up to `rooms` of each channel. Settles files that cannot be fetched."""
    claimed = mailbox.claim(MAIL, rooms, LEASE_SECONDS)
    wanted = list({row.owner for row in claimed})
    found = Channel.select().where(Channel.id.in_(wanted), Channel.deleted_at.is_null()) if claimed else ()
    known: dict[str, Channel] = {channel.id: channel for channel in found}
    unfinished = _unfinished([row.carried.run_id for row in claimed if row.carried.run_id is not None])
    results = [_dispatch(row, known.get(row.owner), unfinished) for row in claimed]
    dispatches = [each for each in results if isinstance(each, Dispatch)]
    settled = [each for each in results if isinstance(each, Fetched)]
    return Found(dispatches, settled, more=mailbox.may_have_more(rooms, claimed))


def record(fetched: Sequence[Fetched]) -> list[Fetched]:
    """Stores the fetched files; retries or gives up the others. Returns []. Safe to repeat."""
    unkept = [each for each in map(_keep, fetched) if each is not None]
    for each in unkept:
        if each.verdict is not None and each.verdict.outcome is Outcome.UNAUTHORIZED:
            problem = {"code": each.verdict.code, "detail": each.verdict.detail}
            channels.require_reauthorization(each.claimed.owner, problem, each.credentials)
    with transaction():
        media.hurry_runs(each.claimed.carried.run_id for each in unkept if _pause(each) is None)
        _put_off(unkept)
    _log(fetched)
    return []


def _unfinished(run_ids: Sequence[str]) -> set[str]:
    """Returns the unfinished runs. Runs held by a member count, as they will still send their files."""
    found = rows("SELECT id FROM runs WHERE id = ANY(%s) AND finished_at IS NULL", (list(run_ids),)) if run_ids else ()
    return {id for (id,) in found}


def _dispatch(claimed: Claimed, channel: Channel | None, unfinished: set[str]) -> Dispatch | Fetched:
    source = claimed.carried.source
    if channel is None or source is None:
        return Fetched(claimed, verdict=_NO_CHANNEL)
    if claimed.carried.run_id is not None and claimed.carried.run_id not in unfinished:
        return Fetched(claimed, verdict=_NOT_WANTED)
    wanted = Media(**source)
    if (wanted.bytes or 0) > media.MOST_BYTES:
        return Fetched(claimed, verdict=TOO_LARGE)
    try:
        media.check_room()
        account = channels.account_of(channel)
    except InvalidToken:
        return Fetched(claimed, verdict=_UNREADABLE, is_ours=True)
    except Unavailable:
        return Fetched(claimed, verdict=_NO_ROOM, is_ours=True)
    return Dispatch(claimed, channels.kind_of(channel), account, wanted)


def _keep(fetched: Fetched) -> Fetched | None:
    """Stores the content. Returns None, or the outcome if the content could not be stored."""
    if fetched.content is None:
        return fetched
    channel_id, workspace_id = fetched.claimed.owner, fetched.claimed.carried.workspace_id
    allowed = {channel_id: bounds.STORED_PER_CHANNEL, workspace_id: bounds.STORED_BY_CONTACTS}
    if fetched.claimed.carried.run_id is not None:
        allowed = {workspace_id: bounds.STORED_PER_WORKSPACE}
    try:
        with stored_bytes.taken(len(fetched.content), allowed):
            media.keep(fetched.claimed.id, fetched.content)
    except TooMuchStored as error:
        verdict = _TOO_MUCH if fetched.claimed.carried.run_id is None else _TOO_MUCH_FOR_RUNS
        verdict = replace(verdict, pause_seconds=error.retry_after_seconds)
        return Fetched(fetched.claimed, verdict=verdict, is_ours=True)
    except TooLarge:
        return Fetched(fetched.claimed, verdict=TOO_LARGE)
    except Unavailable:
        return Fetched(fetched.claimed, verdict=_NO_ROOM, is_ours=True)
    return None


def _put_off(fetched: Sequence[Fetched]) -> None:
    mailbox.put_off(WAITING, [PutOff(each.claimed, _pause(each), not each.is_ours, _problem(each)) for each in fetched])
    if given_up := [each.claimed.id for each in fetched if _pause(each) is None]:
        # Only for files that are no longer mail, so that a stale worker changes nothing.
        query = "UPDATE uploads SET source = NULL WHERE id = ANY(%s) AND due_at IS NULL AND next_attempt_at IS NULL"
        count(query, (given_up,))


def _problem(fetched: Fetched) -> str | None:
    return fetched.verdict.detail or fetched.verdict.code if fetched.verdict else None


def _pause(fetched: Fetched) -> float | None:
    """Returns the seconds until the next attempt; None if the file is given up."""
    verdict, tries = fetched.verdict, fetched.claimed.carried.tries
    if fetched.is_ours:
        return max(verdict.pause_seconds if verdict else 0.0, PAUSES_SECONDS[1])
    most = len(PAUSES_SECONDS) if fetched.claimed.carried.run_id is None else MOST_TRIES_FOR_RUN
    if verdict is None or verdict.outcome is Outcome.FAILED or tries >= most:
        return None
    return max(verdict.pause_seconds, PAUSES_SECONDS[tries])


def _log(fetched: Sequence[Fetched]) -> None:
    lines = []
    for each in fetched:
        outcome = "fetched" if each.content is not None else "failed" if _pause(each) is None else "retried"
        metrics.FETCHES.labels(outcome).inc()
        code = each.verdict.code if each.verdict else None
        lines.append({"upload": each.claimed.id, "channel": each.claimed.owner, "status": outcome, "code": code})
    logs.info_each("media.fetch", lines)
