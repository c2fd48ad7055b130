"""The queues of the retries, one for each delay: in one queue the order is that of time. What is heard is rung on."""

from __future__ import annotations

import dramatiq

from app.domain import lanes


def ring_on(endpoint_id: str) -> None:
    """What was put off is due. Early or heard twice, it finds nothing due, and that is all."""
    lanes.ring([endpoint_id])


for queue in lanes.retry_queues():
    dramatiq.actor(queue_name=queue, actor_name=queue)(ring_on)
