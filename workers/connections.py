"""The `channel-requests` queue: asks providers to connect channels, in threads of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import dramatiq
import structlog

from app.channels.base import Request
from app.config import settings
from app.database import DatabaseAway, database
from app.domain import connections
from app.domain.channel_requests import MAIL
from app.outbound import Answer, BlockingOutbound, Outbound, Reason, failed
from workers.mailboxes import serve
from workers.middleware.closing import Closing

log = structlog.get_logger(__name__)

# Workspaces that are served at once. A provider that hangs holds up no other queue of the process.
THREADS = 4


class Connector:
    """Call `wake` when a workspace has something to ask, `stop` before the process ends. Starts with the first wake."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "connections")
        self._outbound: BlockingOutbound | None = None

    def wake(self, workspace_id: str) -> None:
        """Asks what the workspace has to ask, soon. Never waits."""
        self._threads.submit(self._work, workspace_id)

    def stop(self) -> None:
        """Begins nothing more, and returns when what is under way has ended; the scheduler rings for the rest."""
        self._threads.shutdown(cancel_futures=True)
        if self._outbound is not None:
            self._outbound.close()

    def ask(self, request: Request) -> Answer:
        """Sends the request and waits for its answer."""
        try:
            return self._door().request(
                request.method,
                request.address,
                request.body,
                request.headers,
                most_bytes=connections.MOST_BYTES,
                timeout_seconds=connections.TIMEOUT_SECONDS,
            )
        except ValueError as refusal:
            return failed(Reason.BAD_ADDRESS, str(refusal), may_have_arrived=False)

    def _work(self, workspace_id: str) -> None:
        try:
            connections.work(workspace_id, self.ask)
        except DatabaseAway as error:  # the scheduler rings again
            log.warning("connections.interrupted", workspace=workspace_id, error=str(error).strip())
        except Exception:
            log.exception("connections.broke", workspace=workspace_id)
        finally:
            database.close()  # the next wake may be days away

    def _door(self) -> BlockingOutbound:
        if self._outbound is None:
            configured = settings()
            self._outbound = BlockingOutbound(
                Outbound(
                    timeout_seconds=connections.TIMEOUT_SECONDS,
                    allowed_networks=configured.webhook_allowed_networks,
                    ca_file=configured.webhook_ca_file,
                )
            )
        return self._outbound


connector = Connector()
serve(MAIL, connector.wake)
dramatiq.get_broker().add_middleware(Closing(connector.stop))
