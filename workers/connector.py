"""The connector of a worker process: asks providers what is due about channels, for many workspaces at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from app.channels.base import Outcome, Verdict
from app.domain.channels import channel_connections
from app.domain.channels.channel_connections import Dispatch, Result
from app.domain.channels.channel_requests import MAIL
from app.mailbox import Found
from workers.fair_desk import FairDesk

log = structlog.get_logger(__name__)

MOST_UNDER_WAY = 100
MOST_EACH = 1  # a workspace's channels have their turns

_BROKEN = Verdict(Outcome.LATER)


class Connector(FairDesk[Dispatch, Result]):
    """A provider is asked again if the worker dies. The owners are workspaces."""

    def __init__(self) -> None:
        super().__init__(MAIL, channel_connections.TIMEOUT_SECONDS, MOST_UNDER_WAY, MOST_EACH)

    def claim(self, rooms: Mapping[str, int]) -> Found[Dispatch, Result]:
        """Claims what is to be asked."""
        return channel_connections.claim(rooms)

    def send(self, dispatch: Dispatch) -> None:
        """Asks the provider."""
        self.loop.create_task(self._ask(dispatch))

    def record(self, outcomes: Sequence[Result]) -> Sequence[Result]:
        """Records what providers have answered."""
        return channel_connections.record(outcomes)

    def broken(self, outcome: Result) -> Result:
        """As if there had been no answer."""
        return replace(outcome, verdict=_BROKEN, account=None)

    async def _ask(self, dispatch: Dispatch) -> None:
        asking = channel_connections.asking(dispatch)
        try:
            request = next(asking)
            while True:
                most_bytes, seconds = channel_connections.MOST_BYTES, channel_connections.TIMEOUT_SECONDS
                request = asking.send(await self.ask_any(request, most_bytes, seconds))
        except StopIteration as end:
            result = end.value
        except Exception:
            log.exception("connections.broke", channel=dispatch.claimed.id)
            result = Result(dispatch, _BROKEN)
        self.note(result)
