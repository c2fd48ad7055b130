"""The `writes` queue: applies accepted writes."""

from __future__ import annotations

import dramatiq
import structlog

from app.database import DatabaseAway
from app.domain import jobs

log = structlog.get_logger(__name__)


@dramatiq.actor(queue_name=jobs.MAIL.queue, actor_name=jobs.MAIL.queue)
def writes(workspace_id: str) -> None:
    try:
        jobs.work(workspace_id)
    except DatabaseAway as error:  # the lease ends, and the scheduler rings again
        log.warning("writes.interrupted", workspace=workspace_id, error=str(error).strip())
