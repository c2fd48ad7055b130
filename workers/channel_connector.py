"""The channel connector of a worker process: sends providers the due requests about channels."""

from __future__ import annotations

from dataclasses import replace

import structlog

from app.channels.base import Outcome, Verdict
from app.domain.channels import channel_connections
from app.domain.channels.channel_connections import Dispatch, Result
from workers.fair_dispatcher import FairDispatcher

log = structlog.get_logger(__name__)

_BROKEN = Verdict(Outcome.LATER)


class ChannelConnector(FairDispatcher[Dispatch, Result]):
    """A fair dispatcher whose owners are workspaces."""

    asks_providers = True

    def send(self, dispatch: Dispatch) -> None:
        """Starts asking the provider."""
        self.loop.create_task(self._ask(dispatch))

    def broken(self, outcome: Result) -> Result:
        """Returns the outcome as if the provider had not answered, so that the request is repeated.

        Leaves out the account, because it came from the provider.
        """
        return replace(outcome, verdict=_BROKEN, account=None)

    async def _ask(self, dispatch: Dispatch) -> None:
        asking = channel_connections.asking(dispatch)
        try:
            request = next(asking)
            while True:
                request = asking.send(await self.ask_any(request))
        except StopIteration as end:
            result = end.value
        except Exception:
            log.exception("connections.broke", channel=dispatch.claimed.id)
            result = Result(dispatch, _BROKEN)
        self.note(result)
