"""A Redis broker whose consumers block until a message comes, so idle workers cost little."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from dramatiq import MessageProxy
from dramatiq.brokers.redis import RedisBroker, _RedisConsumer
from dramatiq.errors import ConnectionClosed

from app import bells


class BlockingBroker(RedisBroker):
    """Dramatiq's Redis broker, with a WaitingConsumer for each queue."""

    @property
    def consumer_class(self) -> type[_RedisConsumer]:
        return BlockingConsumer


class BlockingConsumer(_RedisConsumer):
    """Waits for a message, or for room to take one, instead of sleeping and polling."""

    def __init__(self, broker: RedisBroker, queue_name: str, prefetch: int, timeout: int) -> None:
        # Dramatiq fetches twice as many messages as it has threads. A smaller prefetch leaves messages that this worker
        # cannot begin to other workers.
        super().__init__(broker, queue_name, max(1, prefetch // 2), timeout)  # type: ignore[no-untyped-call]
        self._queue_key = f"{broker.namespace}:{queue_name}"
        self._longest = timeout / 1000
        self._room = threading.Event()
        self._newest_next = True

    def __next__(self) -> MessageProxy | None:
        with _refused_as_away():
            if self.message_cache:
                return self._fetch()
            if self.outstanding_message_count >= self.prefetch:
                self._room.wait(self._longest)
                self._room.clear()
                if self.outstanding_message_count >= self.prefetch:
                    return None
            return self._fetch_in_turn()

    def _fetch_in_turn(self) -> MessageProxy | None:
        """Fetches the newest message in every other turn, so that a backlog delays no new message.

        The other turns are for the oldest message, so the backlog does not starve either. Returns None if no message
        came in time.
        """
        newest, self._newest_next = self._newest_next, not self._newest_next
        # Waits until the list has a message: moves one to the head of the same list, and so takes nothing.
        end = "RIGHT" if newest else "LEFT"
        self.broker.client.blmove(self._queue_key, self._queue_key, self._longest, end, "LEFT")
        message = self._fetch()
        if newest and message is not None:
            message.options[bells.OUT_OF_TURN] = True
        return message

    def ack(self, message: Any) -> None:
        with _refused_as_away():
            super().ack(message)  # type: ignore[no-untyped-call]
        self._room.set()

    def nack(self, message: Any) -> None:
        with _refused_as_away():
            super().nack(message)  # type: ignore[no-untyped-call]
        self._room.set()

    def requeue(self, messages: Any) -> None:
        with _refused_as_away():
            super().requeue(messages)  # type: ignore[no-untyped-call]

    def _fetch(self) -> MessageProxy | None:
        # The parent would sleep if it finds nothing, but this consumer has waited already.
        self.timeout = self.misses = 0
        return super().__next__()  # type: ignore[no-untyped-call,no-any-return]


@contextmanager
def _refused_as_away() -> Iterator[None]:
    """Turns errors of Redis into ConnectionClosed, because Dramatiq tries again only after that.

    A full Redis refuses even a fetch with another error.
    """
    try:
        yield
    except redis.RedisError as error:
        raise ConnectionClosed(error) from None
