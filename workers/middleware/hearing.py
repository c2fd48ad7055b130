"""Notes how far the workers have come in each queue, so that lost bells can be told from those that still wait."""

from __future__ import annotations

import time

from dramatiq import Broker, MessageProxy
from dramatiq.middleware import Middleware

from app import bells

EVERY_SECONDS = 0.25


class Hearing(Middleware):
    """Notes the time of a message that is about to be processed, a few times a second for each queue."""

    def __init__(self) -> None:
        self._noted: dict[str, float] = {}

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        if bells.OUT_OF_TURN in message.options:
            return  # it says nothing of those that rang before it
        if time.monotonic() - self._noted.get(message.queue_name, -EVERY_SECONDS) >= EVERY_SECONDS:
            self._noted[message.queue_name] = time.monotonic()
            bells.take_up(message.queue_name, message.message_timestamp)
