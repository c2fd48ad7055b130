"""The `sweeps` queue: holds, releases, cancels and resends the deliveries of an endpoint."""

from __future__ import annotations

import dramatiq
import structlog

from app.database import DatabaseAway
from app.domain.sweeps import MAIL, work

log = structlog.get_logger(__name__)


@dramatiq.actor(queue_name=MAIL.queue, actor_name=MAIL.queue)
def sweeps(endpoint_id: str) -> None:
    try:
        work(endpoint_id)
    except DatabaseAway as error:  # the lease ends, and the scheduler rings again
        log.warning("sweeps.interrupted", endpoint=endpoint_id, error=str(error).strip())
