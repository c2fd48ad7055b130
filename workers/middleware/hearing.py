"""Notes how far the workers have got in each queue. This tells lost bells from waiting ones."""

from __future__ import annotations

import time

from dramatiq import Broker, MessageProxy
from dramatiq.middleware import Middleware

from app import bells

EVERY_SECONDS = 0.25


class Hearing(Middleware):
    """Notes the time of a message before it is processed, at most four times a second per queue."""

    def __init__(self) -> None:
        self._noted: dict[str, float] = {}

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if bells.OUT_OF_TURN in message.options:
            return  # out of turn, so earlier bells may still wait
        if time.monotonic() - self._noted.get(message.queue_name, -EVERY_SECONDS) >= EVERY_SECONDS:
            self._noted[message.queue_name] = time.monotonic()
            bells.take_up(message.queue_name, message.message_timestamp)
