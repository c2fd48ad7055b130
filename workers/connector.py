"""The connector of a worker process: asks providers what is due about channels, in threads of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import structlog

from app.channels.base import Request
from app.config import settings
from app.database import DatabaseAway, database
from app.domain.channels import channel_connections
from app.outbound import Answer, BlockingOutbound, Outbound, Reason, failed

log = structlog.get_logger(__name__)

# Workspaces that are served at once. A provider that hangs holds up no other queue of the process.
THREADS = 4


class Connector:
    """Call `wake` when a workspace has something to ask, `stop` before the process ends. Starts with the first wake."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "connections")
        self._outbound: BlockingOutbound | None = None
        self._lock = threading.Lock()
        self._served: set[str] = set()  # a workspace has one thread, so that it holds up no other
        self._is_stopping = False

    def wake(self, workspace_id: str) -> None:
        """Asks what the workspace has to ask, soon. Never waits. If this comes too late, the scheduler rings again."""
        with self._lock:
            if self._is_stopping or workspace_id in self._served:
                return
            self._served.add(workspace_id)
            self._threads.submit(self._work, workspace_id)

    def stop(self) -> None:
        """Begins nothing more, and returns when what is under way has ended; the scheduler rings for the rest."""
        with self._lock:
            self._is_stopping = True
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
                most_bytes=channel_connections.MOST_BYTES,
                timeout_seconds=channel_connections.TIMEOUT_SECONDS,
            )
        except ValueError as refusal:
            return failed(Reason.BAD_ADDRESS, str(refusal), may_have_arrived=False)

    def _work(self, workspace_id: str) -> None:
        try:
            channel_connections.work(workspace_id, self.ask)
        except DatabaseAway as error:  # the scheduler rings again
            log.warning("connections.interrupted", workspace=workspace_id, error=str(error).strip())
        except Exception:
            log.exception("connections.broke", workspace=workspace_id)
        finally:
            with self._lock:
                self._served.discard(workspace_id)
            database.close()  # the next wake may be days away

    def _door(self) -> BlockingOutbound:
        with self._lock:
            if self._outbound is None:
                configured = settings()
                self._outbound = BlockingOutbound(
                    Outbound(
                        timeout_seconds=channel_connections.TIMEOUT_SECONDS,
                        allowed_networks=configured.webhook_allowed_networks,
                        ca_file=configured.webhook_ca_file,
                    )
                )
            return self._outbound
