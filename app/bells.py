"""Bells: Dramatiq messages that carry only the name of a mailbox's owner; a lost bell costs seconds, never mail."""

from __future__ import annotations

import queue
import threading
from functools import cache

import redis
import structlog
from dramatiq import Broker, Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker

from app.config import settings

log = structlog.get_logger(__name__)

# How long a bell may ring unheard before it is rung again; a flag in Redis remembers it.
RINGING_SECONDS = 5
_QUICK = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5, "retry": None}


def ring(queue_name: str, owner: str) -> None:
    """Rings on that queue for `owner`, soon, from a thread of its own. Never waits, never raises."""
    _ringer().ring((queue_name, owner))


def hear(queue_name: str, owner: str) -> None:
    """Takes the flag away before the mailbox is looked into, so that what comes after rings again."""
    try:
        flags().delete(_flag(queue_name, owner))
    except redis.RedisError as error:
        log.warning("bell.not_cleared", queue=queue_name, owner=owner, error=str(error))


def flush(timeout_seconds: float = 1.0) -> None:
    """Waits until what was rung is on its way; for processes that are about to end."""
    _ringer().flush(timeout_seconds)


def ping() -> None:
    """Raises redis.RedisError or ConnectionError if Redis or the broker does not answer."""
    flags().ping()
    broker = sending_broker()
    if isinstance(broker, RedisBroker):
        broker.client.ping()
    elif isinstance(broker, RabbitmqBroker):
        broker.connection.process_data_events()


@cache
def flags() -> redis.Redis:
    """The Redis that flags, limits and live updates use: quick or not at all."""
    return quick_client(settings().redis_url)


def quick_client(url: str) -> redis.Redis:
    # Without retries: a script that is sent again after a lost answer may have run the first time.
    return redis.Redis.from_url(url, **_QUICK)


class Ringer:
    """A thread that rings what it is told to; the same bell told many times meanwhile rings once."""

    def __init__(self) -> None:
        self._bells: queue.Queue[tuple[str, str]] = queue.Queue()
        self._waiting: set[tuple[str, str]] = set()
        threading.Thread(target=self._run, name="bells", daemon=True).start()

    def ring(self, bell: tuple[str, str]) -> None:
        if bell not in self._waiting:
            self._waiting.add(bell)
            self._bells.put(bell)

    def flush(self, timeout_seconds: float) -> None:
        with self._bells.all_tasks_done:
            self._bells.all_tasks_done.wait_for(lambda: not self._bells.unfinished_tasks, timeout_seconds)

    def _run(self) -> None:
        while True:
            bell = self._bells.get()
            # Forgotten before it rings: mail that comes during the ringing is told again.
            self._waiting.discard(bell)
            self._ring_once(*bell)
            self._bells.task_done()

    def _ring_once(self, queue_name: str, owner: str) -> None:
        try:
            if flags().set(_flag(queue_name, owner), b"1", nx=True, ex=RINGING_SECONDS):
                _send(queue_name, owner)
        except Exception as error:  # whatever a broker raises: the scheduler will ring
            log.warning("bell.lost", queue=queue_name, owner=owner, error=str(error))


def _send(queue_name: str, owner: str) -> None:
    # The actor of a queue has the queue's name; that is all the sender needs to know of it.
    message: Message[None] = Message(queue_name=queue_name, actor_name=queue_name, args=(owner,), kwargs={}, options={})
    sending_broker().enqueue(message)


@cache
def sending_broker() -> Broker:
    """The broker that bells are sent by: quick or not at all, and without middleware."""
    url = settings().broker_url
    if url.startswith("amqp"):
        return RabbitmqBroker(url=url, middleware=[])
    return RedisBroker(client=quick_client(url), middleware=[])


@cache
def _ringer() -> Ringer:
    return Ringer()


def _flag(queue_name: str, owner: str) -> str:
    return f"bell:{queue_name}:{owner}"
