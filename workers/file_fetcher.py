"""The file fetcher of a worker process: downloads files, for many channels at once."""

from __future__ import annotations

import structlog

from app.channels.base import Outcome, Request, Verdict
from app.domain.channels import fetches, media
from app.domain.channels.fetches import Dispatch, Fetched
from app.outbound import Answer
from workers.fair_dispatcher import FairDispatcher

log = structlog.get_logger(__name__)

_BROKEN = Verdict(Outcome.FAILED, code="error", detail="Bellhop could not make the request for the file.")
_CUT = Verdict(Outcome.LATER, code="cut", detail="The file did not arrive completely.")


class FileFetcher(FairDispatcher[Dispatch, Fetched]):
    """A fair dispatcher whose owners are channels."""

    asks_providers = True

    def send(self, dispatch: Dispatch) -> None:
        """Starts fetching the file."""
        self.loop.create_task(self._fetch(dispatch))

    def broken(self, outcome: Fetched) -> Fetched:
        """Returns the outcome that gives the file up."""
        return Fetched(outcome.claimed, verdict=_BROKEN)

    async def _fetch(self, dispatch: Dispatch) -> None:
        claimed, credentials = dispatch.claimed, dispatch.account.credentials
        try:
            result = await self._content(dispatch)
        except Exception:
            log.exception("fetch.broke", upload=claimed.id, channel=claimed.owner)
            result = _BROKEN
        if isinstance(result, bytes):
            self.note(Fetched(claimed, content=result))
            return
        is_ours = result.code == "ours"
        if is_ours:
            result = Verdict(Outcome.LATER, code="ours", detail=result.detail, pause_seconds=self.faults.pause())
        self.note(Fetched(claimed, verdict=result, is_ours=is_ours, credentials=credentials))

    async def _content(self, dispatch: Dispatch) -> bytes | Verdict:
        found = dispatch.located or await self._located(dispatch)
        if isinstance(found, Verdict):
            return found
        # Asks for one byte more than allowed, to notice a file that is too large.
        answer = await self.ask(found, media.MOST_BYTES + 1, fetches.TIMEOUT_SECONDS)
        if not answer.ok:
            return _missed(answer)
        if len(answer.body) > media.MOST_BYTES:
            return fetches.TOO_LARGE
        return answer.body if answer.is_whole and answer.body else _CUT

    async def _located(self, dispatch: Dispatch) -> Request | Verdict:
        kind, account = dispatch.kind, dispatch.account
        answer = await self.ask(kind.locating(account, dispatch.wanted), fetches.MOST_BYTES, fetches.ASKING_SECONDS)
        return _missed(answer) if answer.is_ours else kind.located(account, answer)


def _missed(answer: Answer) -> Verdict:
    """Returns the verdict on a failed download. A later link may work, because links expire."""
    is_final = answer.error_code == "private_address"
    # Leaves out the target of a redirect, because it may contain a token.
    detail = answer.error_without_target
    return Verdict(Outcome.FAILED if is_final else Outcome.LATER, code=answer.error_code, detail=detail)
