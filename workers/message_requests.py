"""Message requests: sends a message by requests to its provider, and interprets the answers."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import structlog

from app.channels.base import File, Outcome, Outgoing, Request, Verdict
from app.channels.verdicts import unanswered, unreadable
from app.database import DatabaseAway
from app.domain.channels import media
from app.domain.conversations.sendings import Dispatch, Sending
from app.errors import NotFound
from app.outbound import Answer
from workers.pacing import Faults

log = structlog.get_logger(__name__)

# How many messages with a file may be in flight: each file is in memory as a whole.
MOST_FILES = 8
FILES_PAUSE_SECONDS = 0.5

_BROKEN = Verdict(Outcome.FAILED, code="error", detail="Bellhop could not make the request to the provider.")


class NotAsked(Exception):
    """The provider cannot have got the message. `verdict` is the outcome to record."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.code)
        self.verdict = verdict


class MessageRequests:
    """Sends messages with `ask`, on one event loop. Begins no message once `is_stopping` is set."""

    def __init__(self, ask: Callable[[Request], asyncio.Future[Answer]], is_stopping: threading.Event) -> None:
        self._ask = ask
        self._is_stopping = is_stopping
        self._files = 0  # how many messages with a file are in flight
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="files")
        self._faults: defaultdict[str, Faults] = defaultdict(Faults)  # the faults of each channel's provider

    async def send(self, dispatch: Dispatch) -> Sending:
        """Sends the message once, and returns the outcome to record. Never raises."""
        at: float | None = None
        self._files += bool(dispatch.attachments)
        try:
            outgoing, request = await self._prepare(dispatch)
        except NotAsked as refusal:
            verdict = refusal.verdict
        except Exception:
            log.exception("message_request.not_made", message=dispatch.claimed.id, channel=dispatch.claimed.owner)
            verdict = _BROKEN
        else:
            verdict, at = await self._outcome(dispatch, outgoing, await request), dispatch.at
        finally:
            self._files -= bool(dispatch.attachments)
        return Sending(
            dispatch.claimed,
            dispatch.conversation_id,
            verdict,
            at,
            dispatch.kind.conversation_rate,
            dispatch.to,
            dispatch.account.credentials,
        )

    async def _prepare(self, dispatch: Dispatch) -> tuple[Outgoing, asyncio.Future[Answer]]:
        """Makes all requests before the one that sends the message, then begins that one.

        Raises NotAsked. Returns the message, and the future of the answer.
        """
        kind, account = dispatch.kind, dispatch.account
        self._check_stopping()
        file = await self._load(dispatch.attachments[0]["id"]) if dispatch.attachments else None
        outgoing = Outgoing(dispatch.claimed.id, dispatch.to, dispatch.text, dispatch.template, file, dispatch.buttons)
        self._check_stopping()
        prepared: str | None = None
        if (request := kind.preparing(account, outgoing)) is not None:
            answer = await self._ask(request)
            self._check_left(dispatch, answer)
            found = kind.prepared(answer)
            if isinstance(found, Verdict):
                raise NotAsked(found)
            prepared = found
            self._check_stopping()
        return outgoing, self._ask(kind.sending(account, outgoing, prepared))

    async def _outcome(self, dispatch: Dispatch, outgoing: Outgoing, answer: Answer) -> Verdict:
        """Interprets the answer.

        If the provider refused the message and there is a replacement, sends that and interprets its answer.
        """
        try:
            instead = dispatch.kind.instead(outgoing, answer)
            again = self._ask(dispatch.kind.sending(dispatch.account, instead, None)) if instead else None
        except Exception:
            log.exception("message_request.not_made", message=dispatch.claimed.id, channel=dispatch.claimed.owner)
            return _BROKEN
        if instead is None or again is None:
            return self._meaning(dispatch, outgoing, answer)
        return self._meaning(dispatch, instead, await again)

    def _meaning(self, dispatch: Dispatch, outgoing: Outgoing, answer: Answer) -> Verdict:
        try:
            self._check_left(dispatch, answer)
            return self._paused(dispatch, dispatch.kind.sent(outgoing, answer))
        except NotAsked as refusal:
            return refusal.verdict
        except Exception:
            log.exception(
                "message_request.answer_not_read", message=dispatch.claimed.id, channel=dispatch.claimed.owner
            )
            return unreadable("The provider")

    async def _load(self, upload_id: str) -> File:
        if self._files > MOST_FILES:
            raise NotAsked(Verdict(Outcome.LATER, pause_seconds=FILES_PAUSE_SECONDS))
        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, media.load, upload_id)
        except NotFound:
            raise NotAsked(Verdict(Outcome.FAILED, code="no_file", detail="The file is not there any more.")) from None
        except DatabaseAway:
            raise NotAsked(Verdict(Outcome.LATER, pause_seconds=FILES_PAUSE_SECONDS)) from None

    def _check_stopping(self) -> None:
        if self._is_stopping.is_set():
            raise NotAsked(Verdict(Outcome.LATER))

    def _check_left(self, dispatch: Dispatch, answer: Answer) -> None:
        """Raises NotAsked if the request cannot have arrived.

        The message is tried again, after a pause that grows while the provider cannot be reached.
        """
        if not answer.may_have_arrived:
            seconds = self._faults[dispatch.claimed.owner].pause()
            raise NotAsked(replace(unanswered(answer), pause_seconds=seconds))

    def _paused(self, dispatch: Dispatch, verdict: Verdict) -> Verdict:
        """Adds a growing pause if the provider fails, because the fate of each message is unknown."""
        if verdict.outcome is Outcome.UNKNOWN and verdict.pauses == "channel":
            return replace(verdict, pause_seconds=self._faults[dispatch.claimed.owner].pause())
        self._faults.pop(dispatch.claimed.owner, None)
        return verdict
