"""The `deliveries` queue: sends what is due to an endpoint."""

from __future__ import annotations

import dramatiq
from dramatiq import Broker, Worker
from dramatiq.middleware import Middleware

from app import mailbox
from app.domain.deliveries import MAIL
from workers.sender import Sender

sender = Sender()


class _Closing(Middleware):
    """Lets the attempts under way end, and be recorded, before the process does."""

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        sender.stop()


dramatiq.get_broker().add_middleware(_Closing())


@dramatiq.actor(queue_name=MAIL.queue, actor_name=MAIL.queue)
def deliveries(endpoint_id: str) -> None:
    mailbox.hear(MAIL, endpoint_id)
    sender.wake(endpoint_id)
