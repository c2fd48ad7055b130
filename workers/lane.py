"""The processes of both lanes: one sender each, woken by the bells of the lane's queue."""

from __future__ import annotations

import gc

import dramatiq

from app.mailbox import Mail
from workers.middleware.closing import Closing
from workers.sender import Sender


def serve(lane: Mail) -> None:
    """Declares the lane's actor in this process."""
    sender = Sender(lane)
    dramatiq.get_broker().add_middleware(Closing(sender.stop))

    @dramatiq.actor(queue_name=lane.queue, actor_name=lane.queue)
    def send(*endpoint_ids: str) -> None:
        sender.wake(*endpoint_ids)

    # Everything there is now stays, and attempts leave hardly any cycles: the collector would run five times a second
    # for nothing.
    gc.freeze()
    gc.set_threshold(10_000)
