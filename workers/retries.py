"""The queues of the retries, one for each delay: in one queue the order is that of time. What is heard is rung on."""

from __future__ import annotations

import dramatiq
import structlog

from app.database import DatabaseAway
from app.domain import lanes

log = structlog.get_logger(__name__)


def ring_due() -> None:
    """Retries are due. Heard early or twice, it finds nothing due, and that is all."""
    try:
        lanes.ring_due()
    except DatabaseAway as error:  # the scheduler will ring
        log.warning("retries.interrupted", error=str(error).strip())


for queue in lanes.retry_queues():
    dramatiq.actor(queue_name=queue, actor_name=queue)(ring_due)
