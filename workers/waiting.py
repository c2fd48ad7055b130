"""A Redis broker whose consumers block in Redis until a message comes, so that an idle worker costs next to nothing."""

from __future__ import annotations

import threading
from typing import Any

import redis
from dramatiq import MessageProxy
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.errors import ConnectionClosed


class WaitingBroker(RedisBroker):
    """Dramatiq's Redis broker; only waiting differs."""

    @property
    def consumer_class(self) -> type[_RedisConsumer]:
        return WaitingConsumer


class WaitingConsumer(_RedisConsumer):
    """Where Dramatiq's consumer sleeps and polls, this one waits: for a message, or for room to take one."""

    def __init__(self, broker: RedisBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        # Dramatiq fetches twice as many messages as it has threads. Those it cannot begin stay for others.
        super().__init__(broker, queue_name, max(1, prefetch // 2), timeout)  # type: ignore[no-untyped-call]
        self._queue_key = f"{broker.namespace}:{queue_name}"
        self._longest = timeout / 1000
        self._room = threading.Event()

    def __next__(self) -> MessageProxy | None:
        try:
            if not self.message_cache:
                if self.outstanding_message_count >= self.prefetch:
                    self._room.wait(self._longest)
                    self._room.clear()
                else:
                    # Moves the head of the list to where it is: waits until there is one and takes nothing.
                    self.broker.client.blmove(self._queue_key, self._queue_key, self._longest, "LEFT", "LEFT")
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
        # The parent sleeps if it finds nothing, and this consumer has waited already.
        self.timeout = 0
        return super().__next__()  # type: ignore[no-untyped-call,no-any-return]
