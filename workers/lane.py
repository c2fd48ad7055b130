"""What the processes of both lanes do: one sender, woken by the bells of the lane's queue."""

from __future__ import annotations

import gc

import dramatiq
from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app.mailbox import Mail
from workers.sender import Sender


class _Closing(Middleware):
    """Lets the attempts under way end, and be recorded, before the process does."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._sender.stop()


def serve(lane: Mail) -> None:
    """Declares the lane's actor in this process."""
    sender = Sender(lane)
    dramatiq.get_broker().add_middleware(_Closing(sender))

    @dramatiq.actor(queue_name=lane.queue, actor_name=lane.queue)
    def send(*endpoint_ids: str) -> None:
        sender.wake(*endpoint_ids)

    # What there is now stays. Of what attempts make hardly anything is left to the collector of cycles, which would
    # look for it five times a second.
    gc.freeze()
    gc.set_threshold(10_000)
