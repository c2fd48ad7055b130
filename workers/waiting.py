"""A Redis broker whose consumers sleep in Redis until a message comes, so that an idle worker costs next to nothing."""

from __future__ import annotations

import threading
from typing import Any

import redis
from dramatiq import MessageProxy
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.common import dq_name
from dramatiq.errors import ConnectionClosed

HOLDING_SECONDS = 0.1


class WaitingBroker(RedisBroker):
    """Dramatiq's Redis broker; only waiting differs."""

    @property
    def consumer_class(self) -> type[_RedisConsumer]:
        return WaitingConsumer


class WaitingConsumer(_RedisConsumer):
    """Where Dramatiq's consumer sleeps and looks again, this one waits: for a message, or for room to take one."""

    def __init__(self, broker: RedisBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        self._is_of_delayed = queue_name == dq_name(queue_name)
        # Dramatiq holds twice as many messages as it has threads; what would wait here, another process may begin.
        at_once = prefetch if self._is_of_delayed else max(1, prefetch // 2)
        super().__init__(broker, queue_name, at_once, timeout)  # type: ignore[no-untyped-call]
        self._queue_key = f"{broker.namespace}:{queue_name}"
        self._longest = timeout / 1000
        self._room = threading.Event()

    @property
    def _seconds(self) -> float:
        """How long to wait at most: Dramatiq looks after each wait whether a message that it holds has come due."""
        return HOLDING_SECONDS if self._is_of_delayed and self.outstanding_message_count else self._longest

    def __next__(self) -> MessageProxy | None:
        try:
            if not self.message_cache:
                if self.outstanding_message_count >= self.prefetch:
                    self._room.wait(self._seconds)
                    self._room.clear()
                else:
                    # Moves the head of the list to where it is: waits until there is one, and takes nothing.
                    self.broker.client.blmove(self._queue_key, self._queue_key, self._seconds, "LEFT", "LEFT")
                self.misses = 0
            return self._fetch()
        except redis.ConnectionError as error:
            raise ConnectionClosed(error) from None

    def ack(self, message: Any) -> None:
        super().ack(message)  # type: ignore[no-untyped-call]
        self._room.set()

    def nack(self, message: Any) -> None:
        super().nack(message)  # type: ignore[no-untyped-call]
        self._room.set()

    def _fetch(self) -> MessageProxy | None:
        # The parent sleeps where it finds nothing; without room, or after a wait in vain, there is nothing to find.
        self.timeout = 0
        return super().__next__()  # type: ignore[no-untyped-call,no-any-return]
