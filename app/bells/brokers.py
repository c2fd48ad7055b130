"""The broker that carries bells, on Redis or RabbitMQ, with timeouts of half a second."""

from __future__ import annotations

import uuid
from functools import cache
from typing import Any

import pika
import redis
import structlog
from dramatiq import Broker, Message
from dramatiq.brokers.rabbitmq import DEAD_MESSAGE_TTL, RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.common import xq_name
from pika.exceptions import AMQPError

from app.config import settings
from app.lib import redis_servers

log = structlog.get_logger(__name__)

_QUORUM = {"x-queue-type": "quorum"}
_QUICK = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5, "retry": None}


def quick_client(url: str) -> redis.Redis:
    """Returns a client that waits half a second at most, and never retries."""
    # No retries: a script whose answer was lost may have run.
    return redis_servers.client(url, **_QUICK)


class QuorumBroker(RabbitmqBroker):
    """A broker on RabbitMQ whose queues outlive the loss of a node, if there are three or more."""

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        usual = super()._build_queue_arguments(queue_name)  # type: ignore[no-untyped-call]
        return {**usual, **_QUORUM}

    def _declare_xq_queue(self, queue_name: str) -> Any:
        arguments = {"x-message-ttl": DEAD_MESSAGE_TTL, **_QUORUM}
        return self.channel.queue_declare(queue=xq_name(queue_name), durable=True, arguments=arguments)


@cache
def sending_broker() -> Broker:
    """Returns the broker that bells are sent to, with the timeouts of `quick_client`."""
    url = settings().broker_url
    if url.startswith("amqp"):
        broker = QuorumBroker(url=url, middleware=[])
        for name in ("socket_timeout", "stack_timeout", "blocked_connection_timeout"):
            setattr(broker.parameters, name, _QUICK["socket_timeout"])
        return broker
    return RedisBroker(client=quick_client(url), middleware=[])


def ping() -> None:
    """Checks that RabbitMQ answers, if it is the broker. Raises ConnectionError if it does not."""
    broker = sending_broker()
    if isinstance(broker, RabbitmqBroker):
        try:
            # Opens a new connection: RabbitMQ ends idle ones, and this thread may have rung long ago.
            pika.BlockingConnection(broker.parameters).close()
        except (AMQPError, OSError) as error:
            raise ConnectionError(f"RabbitMQ does not answer: {error!r}") from error


def is_empty(queue_name: str) -> bool:
    """Whether no message waits in the queue; False if RabbitMQ does not answer."""
    broker = sending_broker()
    if isinstance(broker, RabbitmqBroker):
        try:
            # Also creates the queue if it is gone: a message to a queue that does not exist is dropped.
            return broker.get_queue_message_counts(queue_name)[0] == 0
        except AMQPError as error:
            # RabbitMQ ends idle connections. The next call opens another.
            del broker.connection
            log.info("bells.queue_not_counted", queue=queue_name, error=repr(error))
            return False
    return broker.client.llen(f"{broker.namespace}:{queue_name}") == 0  # type: ignore[attr-defined,no-any-return]


def send(message: Message[None], place: float) -> None:
    """Sends the message. `place`: where in the queue, from 0 (behind the first) to 1 (the end).

    On RabbitMQ, the message always goes to the end.
    """
    broker = sending_broker()
    if place == 1 or not isinstance(broker, RedisBroker):
        broker.enqueue(message)
        return
    message_id = str(uuid.uuid4())
    key = f"{broker.namespace}:{message.queue_name}"
    data = message.copy(options={**message.options, "redis_message_id": message_id}).encode()
    broker.client.eval(_INSERT, 2, key, f"{key}.msgs", message_id, data, place)


# Like `enqueue`, but at another place: never before the first message, which a consumer may be about to fetch.
_INSERT = """
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local other = redis.call('LINDEX', KEYS[1], math.floor(redis.call('LLEN', KEYS[1]) * ARGV[3]))
if other then
    redis.call('LINSERT', KEYS[1], 'AFTER', other, ARGV[1])
else
    redis.call('RPUSH', KEYS[1], ARGV[1])
end
"""
