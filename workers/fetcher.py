"""The fetcher of a worker process: keeps downloads of files under way, those of many channels at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import structlog

from app import mailbox
from app.channels.base import Outcome, Request, Verdict
from app.domain import fetches, media
from app.domain.fetches import Dispatch, Fetched
from app.outbound import Answer
from workers.desk import Desk
from workers.faults import Faults

log = structlog.get_logger(__name__)

# Each file is in memory as a whole.
MOST_UNDER_WAY = 12
# For each channel: one whose provider hangs has at most these, and delays no other.
MOST_EACH = 4
# Of the answer that says where a file is.
MOST_ANSWER_BYTES = 65_536

_BROKEN = Verdict(Outcome.FAILED, code="error", detail="Bellhop could not make the request for the file.")
_CUT = Verdict(Outcome.LATER, code="cut", detail="The file did not arrive completely.")


class Fetcher(Desk[Fetched]):
    """A file whose worker dies is fetched again by another one when its lease ends. The owners are channels."""

    def __init__(self) -> None:
        super().__init__(fetches.FETCHING_SECONDS)
        self._awake: dict[str, None] = {}  # channels that may have files, the one to be served next first
        self._under_way: Counter[str] = Counter()
        self._faults = Faults()  # used by the loop's thread

    @property
    def is_busy(self) -> bool:
        """Whether any file is under way, or not stored."""
        return bool(self._under_way)

    def record(self, outcomes: Sequence[Fetched]) -> Sequence[Fetched]:
        """Stores what has come."""
        fetches.record(outcomes)
        return ()

    def end(self, outcome: Fetched) -> None:
        """Makes room for another file of the channel."""
        owner = outcome.claimed.owner
        self._under_way[owner] -= 1
        if not self._under_way[owner]:
            del self._under_way[owner]

    def claim(self) -> None:
        """Fills the room of the channels that may have files; the next call begins with the others."""
        while self.bells:
            self._awake.setdefault(self.bells.popleft())
        rooms = self._rooms()
        if not rooms:
            return
        mailbox.hear(fetches.MAIL, *rooms)
        dispatches, settled, full = fetches.claim(rooms)
        self._under_way.update([each.claimed.owner for each in dispatches])
        self._under_way.update([each.claimed.owner for each in settled])
        for channel_id in rooms:
            del self._awake[channel_id]
        self._awake |= dict.fromkeys(full)
        self.note(*settled)
        if dispatches:
            self.loop.call_soon_threadsafe(self._fetch_all, dispatches)

    def leave(self) -> None:
        """Rings for the channels that may have files."""
        for channel_id in {*self._awake, *self.bells}:
            mailbox.hear(fetches.MAIL, channel_id)
            mailbox.ring(fetches.MAIL, channel_id)

    def _rooms(self) -> dict[str, int]:
        left = MOST_UNDER_WAY - self._under_way.total()
        rooms = {}
        for channel_id in self._awake:
            if room := min(left, MOST_EACH - self._under_way[channel_id]):
                rooms[channel_id] = room
                left -= room
        return rooms

    def _fetch_all(self, dispatches: Sequence[Dispatch]) -> None:
        for dispatch in dispatches:
            self.loop.create_task(self._fetch(dispatch))

    async def _fetch(self, dispatch: Dispatch) -> None:
        claimed, tries, credentials = dispatch.claimed, dispatch.tries, dispatch.account.credentials
        try:
            result = await self._content(dispatch)
        except Exception:
            log.exception("fetch.broke", upload=claimed.id, channel=claimed.owner)
            result = _BROKEN
        if isinstance(result, bytes):
            self.note(Fetched(claimed, tries, content=result))
            return
        is_ours = result.code == "ours"
        if is_ours:
            result = Verdict(Outcome.LATER, code="ours", detail=result.detail, pause_seconds=self._faults.pause())
        self.note(Fetched(claimed, tries, verdict=result, is_ours=is_ours, credentials=credentials))

    async def _content(self, dispatch: Dispatch) -> bytes | Verdict:
        kind, account = dispatch.kind, dispatch.account
        located = await self._ask(kind.locating(account, dispatch.wanted), MOST_ANSWER_BYTES, fetches.ASKING_SECONDS)
        if located.is_ours:
            return _missed(located)
        found = kind.located(account, located)
        if isinstance(found, Verdict):
            return found
        # One byte more shows that the file is too large.
        answer = await self._ask(found, media.MOST_BYTES + 1, fetches.FETCHING_SECONDS)
        if not answer.ok:
            return _missed(answer)
        if len(answer.body) > media.MOST_BYTES:
            return fetches.TOO_LARGE
        return answer.body if answer.is_whole and answer.body else _CUT

    async def _ask(self, request: Request, most_bytes: int, timeout_seconds: float) -> Answer:
        return await self.outbound.request(
            request.method,
            request.address,
            request.body,
            request.headers,
            most_bytes=most_bytes,
            timeout_seconds=timeout_seconds,
        )


def _missed(answer: Answer) -> Verdict:
    """Links end, so whatever the status is, the link that the provider gives next time may work."""
    is_final = answer.error_code == "private_address"
    # Not the target of a redirect: it may contain a token.
    detail = answer.error_without_target
    return Verdict(Outcome.FAILED if is_final else Outcome.LATER, code=answer.error_code, detail=detail)
