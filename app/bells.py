"""Bells: Dramatiq messages that carry only the names of mailboxes' owners; a lost bell costs seconds, never mail."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache

import pika
import redis
import structlog
from dramatiq import Broker, Message
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.redis import RedisBroker
from pika.exceptions import AMQPError

from app import metrics
from app.config import settings

log = structlog.get_logger(__name__)

# How long a bell may ring unheard before it is rung again; a flag in Redis remembers it.
RINGING_SECONDS = 5
# Under load, so much time's bells are rung together. Those that rang already are asked for less and less often, as long
# as nobody hears any of them: none waits for longer than it has been unheard.
GATHERING_SECONDS, MOST_GATHERING_SECONDS = 0.02, 0.32
# Bells that may share a message do so, for a message costs a worker a millisecond or two; many leave some for others.
LEAST_TOGETHER, MOST_TOGETHER, MESSAGES = 4, 100, 16
_QUICK = {"socket_timeout": 0.5, "socket_connect_timeout": 0.5, "retry": None}


@dataclass(frozen=True, slots=True)
class Bell:
    """`owner`: none where the queue says all. `at`: the Unix time before which it is not to be heard.

    `shared`: whether it may be in a message with others of its queue, all of which one worker then hears.
    """

    queue_name: str
    owner: str = ""
    at: float | None = None
    shared: bool = False

    @property
    def flag(self) -> str:
        """The key in Redis that says that it rings already."""
        return f"bell:{self.queue_name}:{self.owner}" + ("" if self.at is None else f":{self.at}")


def ring(queue_name: str, owner: str, *, shared: bool = False) -> None:
    """Rings on that queue for `owner`, soon, from a thread of its own. Never waits, never raises."""
    _ringer().ring(Bell(queue_name, owner, shared=shared))


def ring_later(queue_name: str, seconds: float) -> None:
    """Sends a bell for nobody in particular, to be heard when so many seconds are over.

    Those of one queue and quarter of a second are one, whoever sends them.
    """
    _ringer().ring(Bell(queue_name, at=math.ceil((time.time() + seconds) * 4) / 4))


def hear(queue_name: str, owners: Sequence[str]) -> None:
    """Takes the flags away before the mailboxes are looked into, so that what comes after rings again."""
    try:
        flags().delete(*(Bell(queue_name, owner).flag for owner in owners))
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.warning("bell.not_cleared", queue=queue_name, owners=owners, error=str(error))


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
        try:
            # By a connection of its own: RabbitMQ ends those that were idle, and they do not come back.
            pika.BlockingConnection(broker.parameters).close()
        except (AMQPError, OSError) as error:
            raise ConnectionError(f"RabbitMQ does not answer: {error!r}") from error


@cache
def flags() -> redis.Redis:
    """The Redis that flags, limits and live updates use: quick or not at all."""
    return quick_client(settings().redis_url)


def quick_client(url: str) -> redis.Redis:
    # Without retries: a script that is sent again after a lost answer may have run the first time.
    return redis.Redis.from_url(url, **_QUICK)


class Ringer:
    """A thread that rings what it is told to, at once when it is idle, else what has gathered since it rang last."""

    def __init__(self) -> None:
        self._told: set[Bell] = set()
        self._ringing: set[Bell] = set()
        self._unheard: Set[Bell] = set()  # of those that rang last
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name="bells", daemon=True).start()

    def ring(self, bell: Bell) -> None:
        if bell not in self._told:
            with self._changed:
                self._told.add(bell)
                self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._told and not self._ringing, timeout_seconds)

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._told - self._unheard, pause)
                self._changed.wait_for(lambda: self._told)
                # Forgotten before they ring: mail that comes during the ringing is told again.
                self._ringing, self._told = self._told, set()
            self._unheard = self._ring_all(self._ringing)
            any_new = self._unheard != self._ringing
            pause = 0.0 if any_new else min(2 * pause + GATHERING_SECONDS, MOST_GATHERING_SECONDS)
            with self._changed:
                self._ringing = set()
                self._changed.notify_all()
            time.sleep(GATHERING_SECONDS)

    def _ring_all(self, bells: Set[Bell]) -> Set[Bell]:
        """Returns those that rang already, or could not be rung."""
        try:
            raised = flags().pipeline(transaction=False)
            for bell in bells:
                raised.set(bell.flag, b"1", nx=True, ex=RINGING_SECONDS)
            new = {bell for bell, is_new in zip(bells, raised.execute(), strict=True) if is_new}
            for together in _by_message(new):
                _send(together)
            metrics.BELLS.labels("rung").inc(len(new))
            return bells - new
        except Exception as error:  # whatever a broker raises: the scheduler will ring
            metrics.REDIS_AWAY.inc()
            metrics.BELLS.labels("lost").inc(len(bells))
            log.warning("bells.lost", bells=len(bells), error=str(error))
            return bells


def _by_message(bells: Collection[Bell]) -> Iterator[list[Bell]]:
    sharing: dict[str, list[Bell]] = defaultdict(list)
    for bell in bells:
        if bell.shared:
            sharing[bell.queue_name].append(bell)
        else:
            yield [bell]
    for those in sharing.values():
        size = min(MOST_TOGETHER, max(LEAST_TOGETHER, math.ceil(len(those) / MESSAGES)))
        yield from (those[start : start + size] for start in range(0, len(those), size))


def _send(together: Sequence[Bell]) -> None:
    # The actor of a queue has the queue's name; that is all the sender needs to know of it.
    name, at, delay = together[0].queue_name, together[0].at, None
    if at is not None:
        # Dramatiq cuts the time it adds this to off at the millisecond: rather late by one than early.
        delay = max(0, math.ceil((at - time.time()) * 1000) + 1)
    owners = tuple(bell.owner for bell in together if bell.owner)
    message: Message[None] = Message(queue_name=name, actor_name=name, args=owners, kwargs={}, options={})
    sending_broker().enqueue(message, delay=delay)


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
