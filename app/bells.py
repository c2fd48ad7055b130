"""Bells: Dramatiq messages that carry only the name of a mailbox's owner; a lost bell costs seconds, never mail."""

from __future__ import annotations

import threading
from functools import cache

import dramatiq
import redis
import structlog
from dramatiq import Broker, Message

from app.config import settings

log = structlog.get_logger(__name__)

# How long a bell may ring unheard before it is rung again; a flag in Redis remembers it.
RINGING_SECONDS = 5
_QUICK = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5, "retry": None}


def ring(queue: str, owner: str) -> None:
    """Rings on `queue` for `owner`, soon, from a thread of its own. Never waits, never raises."""
    _ringer().ring((queue, owner))


def hear(queue: str, owner: str) -> None:
    """Takes the flag away before the mailbox is looked into, so that what comes after rings again."""
    try:
        flags().delete(_flag(queue, owner))
    except redis.RedisError as error:
        log.warning("bell.not_cleared", queue=queue, owner=owner, error=str(error))


def flush(timeout_seconds: float = 1.0) -> None:
    """Waits until what was rung is on its way; for processes that are about to end."""
    _ringer().idle.wait(timeout_seconds)


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
        self._due: dict[tuple[str, str], None] = {}
        self._told = threading.Event()
        self.idle = threading.Event()
        self.idle.set()
        threading.Thread(target=self._run, name="bells", daemon=True).start()

    def ring(self, bell: tuple[str, str]) -> None:
        if bell not in self._due:
            self.idle.clear()
            self._due[bell] = None
            self._told.set()

    def _run(self) -> None:
        while True:
            self._told.wait()
            self._told.clear()
            while self._due:
                bell = next(iter(self._due))
                # Forgotten before it rings: mail that comes during the ringing is told again.
                self._due.pop(bell)
                self._ring_once(*bell)
            self.idle.set()

    def _ring_once(self, queue: str, owner: str) -> None:
        try:
            if flags().set(_flag(queue, owner), b"1", nx=True, ex=RINGING_SECONDS):
                _send(queue, owner)
        except Exception as error:  # whatever a broker raises: the scheduler will ring
            log.warning("bell.lost", queue=queue, owner=owner, error=str(error))


def _send(queue: str, owner: str) -> None:
    # The actor of a queue has the queue's name; that is all the sender needs to know of it.
    message: Message[None] = Message(queue_name=queue, actor_name=queue, args=(owner,), kwargs={}, options={})
    sending_broker().enqueue(message)


@cache
def sending_broker() -> Broker:
    """The broker that bells are sent by: in a worker its own, elsewhere a quick one without middleware."""
    return dramatiq.broker.global_broker or _new_broker()


def _new_broker() -> Broker:
    url = settings().broker_url
    if url.startswith("amqp"):
        from dramatiq.brokers.rabbitmq import RabbitmqBroker

        return RabbitmqBroker(url=url, middleware=[])
    from dramatiq.brokers.redis import RedisBroker

    return RedisBroker(client=quick_client(url), middleware=[])


_ringers: dict[int, Ringer] = {}
_ringers_lock = threading.Lock()


def _ringer() -> Ringer:
    # One for each process: a thread does not survive a fork.
    import os

    pid = os.getpid()
    if pid not in _ringers:
        with _ringers_lock:
            _ringers.setdefault(pid, Ringer()) if pid not in _ringers else None
    return _ringers[pid]


def _flag(queue: str, owner: str) -> str:
    return f"bell:{queue}:{owner}"
