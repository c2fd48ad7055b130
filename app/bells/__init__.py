"""Bells: Dramatiq messages that name the owners of mailboxes with mail.

They carry nothing else, so a lost bell costs seconds, never mail.

A flag in Redis marks a bell that is ringing: no process rings it again until a worker hears it, however long that
takes. So the number of messages grows with the mailboxes, not with the mail. The flag holds the time of the ring.
Queues are first in, first out: once a worker has taken up a message that rang well after that time, or if the queue is
empty, a bell that still has its flag is lost, and rings again.

Consumers take the newest message in every other turn, so that new bells pass a backlog. A bell that is not for new mail
has another `Turn`, so that it does not pass for new. A message taken out of turn says nothing about earlier ones.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache

import redis
import structlog
from dramatiq import Message
from dramatiq.brokers.redis import RedisBroker

from app import metrics
from app.bells import brokers
from app.config import settings
from app.lib import vitals

log = structlog.get_logger(__name__)

# A bell is lost only if it rang longer ago than this: until then its message may still be on its way.
RINGING_SECONDS = 5
# A flag that no process sets or clears any more expires after this time. Ringing extends it.
FLAG_SECONDS = 86_400
# Under load, bells are gathered for this time and ring together. The time grows while all of them are ringing already.
GATHERING_SECONDS, MOST_GATHERING_SECONDS = 0.02, 0.32
# Bells share messages, because a message costs a worker a millisecond or two. Beyond 16 bells, there are as many
# messages as bells in each, so that several workers share the work. No message may keep a worker for long from others.
LEAST_TOGETHER, MOST_TOGETHER = 4, 16
# The option that marks a message as not consumed in the order in which messages rang.
OUT_OF_TURN = "out_of_turn"


class Turn(Enum):
    """Where a bell joins its queue on Redis. On RabbitMQ, it always joins at the new end."""

    NEW = "at the new end"
    # For mail that is left after a worker's slice of time. At the new end, it would be taken at once, again and again.
    AGAIN = "anywhere"
    # For overdue mail. New mail of the same owner still rings: its bell passes the late one in a backlog.
    LATE = "behind the oldest"


@dataclass(frozen=True, slots=True)
class Bell:
    """A mailbox to ring for: its queue and its owner."""

    queue_name: str
    owner: str
    turn: Turn = Turn.NEW

    @property
    def flag(self) -> str:
        """The key in Redis that holds the time of the ring while the bell is ringing."""
        return f"bell:{self.queue_name}:{self.owner}"


def ring(queue_name: str, owner: str, turn: Turn | None = None) -> None:
    """Rings for `owner` soon, from another thread. Never waits, never raises.

    `turn`: None means this process's usual turn.
    """
    _ringer().ring(Bell(queue_name, owner, turn or _ringer().usual_turn))


def ring_for_overdue() -> None:
    """Makes LATE the usual turn of this process, which rings only for overdue mail."""
    _ringer().usual_turn = Turn.LATE


def hear(queue_name: str, owners: Sequence[str]) -> None:
    """Clears the owners' flags, so that later mail rings again. Never raises.

    Call it before looking into the owners' mailboxes.
    """
    try:
        flags().delete(*(Bell(queue_name, owner).flag for owner in owners))
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.warning("bell.not_cleared", queue=queue_name, owners=owners, error=str(error))


def take_up(queue_name: str, rung_at: int) -> None:
    """Notes that a worker has taken up a message that rang at `rung_at`, in Unix milliseconds.

    A bell that rang well before that message has been taken up as well, or is lost. Never raises.
    """
    try:
        flags().set(_newest(queue_name), rung_at, ex=FLAG_SECONDS)
    except redis.RedisError as error:
        metrics.REDIS_AWAY.inc()
        log.warning("bell.not_noted", queue=queue_name, error=str(error))


def flush(timeout_seconds: float = 1.0) -> None:
    """Waits up to `timeout_seconds` until all bells are sent. For processes about to end."""
    _ringer().flush(timeout_seconds)


def ping() -> None:
    """Checks that Redis accepts writes and the broker answers. Raises RedisError, ConnectionError."""
    for client in clients():
        # Not PING: a full Redis answers it, but refuses bells.
        client.set("ping", "", ex=1)
    brokers.ping()


def clients() -> list[redis.Redis]:
    """Returns the client for flags, and the broker's client if that uses another Redis."""
    configured = settings()
    is_apart = configured.broker_url != configured.redis_url
    broker = brokers.sending_broker() if is_apart else None
    return [flags(), *([broker.client] if isinstance(broker, RedisBroker) else [])]


@cache
def flags() -> redis.Redis:
    """The client for flags, limits and live updates."""
    return brokers.quick_client(settings().redis_url)


class Ringer:
    """A thread that rings bells: at once while it is idle, in batches under load."""

    def __init__(self) -> None:
        self.usual_turn = Turn.NEW
        self._pending: set[Bell] = set()
        self._ringing: set[Bell] = set()
        self._unheard: Set[Bell] = set()  # bells of the last batch that rang already or could not ring
        self._changed = threading.Condition()
        vitals.start(self._run, "bells")

    def ring(self, bell: Bell) -> None:
        """Queues the bell to ring soon. Never waits."""
        if bell not in self._pending:
            with self._changed:
                self._pending.add(bell)
                self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> None:
        """Waits until every bell asked for so far is sent, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending and not self._ringing, timeout_seconds)

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending - self._unheard, pause)
                self._changed.wait_for(lambda: self._pending)
                # Cleared before the bells ring, so that mail that arrives meanwhile rings again.
                self._ringing, self._pending = self._pending, set()
            self._unheard = self._ring_all(self._ringing)
            any_new = self._unheard != self._ringing
            pause = 0.0 if any_new else min(2 * pause + GATHERING_SECONDS, MOST_GATHERING_SECONDS)
            with self._changed:
                self._ringing = set()
                self._changed.notify_all()
            time.sleep(GATHERING_SECONDS)

    def _ring_all(self, bells: Set[Bell]) -> Set[Bell]:
        """Rings the bells. Returns the ones that were ringing already or could not be rung."""
        alike: dict[tuple[str, Turn], list[Bell]] = defaultdict(list)
        for bell in bells:
            alike[bell.queue_name, bell.turn].append(bell)
        return bells - {bell for (queue, turn), those in alike.items() for bell in _ring_on(queue, turn, those)}


def _ring_on(queue_name: str, turn: Turn, bells: Sequence[Bell]) -> Sequence[Bell]:
    """Rings the `bells` that are silent or lost; returns them. Never raises."""
    unsent = bells
    try:
        rung_at, silent, old = _raise_flags(queue_name, turn, bells)
        unsent = silent
        if old and brokers.is_empty(queue_name):
            silent += _raise_flags(queue_name, turn, old, all_lost=True)[1]
        for together in _by_message(silent):
            _send(queue_name, turn, together, rung_at)
        metrics.BELLS.labels("rung").inc(len(silent))
        return silent
    except Exception as error:  # any error of a broker: the bells are lost, and the scheduler rings instead
        metrics.REDIS_AWAY.inc()
        metrics.BELLS.labels("lost").inc(len(bells))
        log.warning("bells.lost", queue=queue_name, bells=len(bells), error=str(error))
        # Otherwise, flags of bells without a message would suppress the scheduler's ring for RINGING_SECONDS.
        with suppress(redis.RedisError):
            flags().delete(*(bell.flag for bell in unsent))
        return []


# Uses the clock of Redis, so that the clocks of the processes need not agree. Sets the flags of silent and lost bells
# to the time; for a late bell, to minus the time, which counts as silent for a bell that is not late. Returns the time
# and, for each bell, 1 if its flag was set, 2 if it rang long ago, 0 if it rang just now.
_RAISE = """
local time = redis.call('TIME')
local now, newest = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(redis.call('GET', KEYS[1]) or 0)
local ringing, keep, all_lost, is_late = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1', ARGV[4] == '1'
local answer = {now}
for place = 2, #KEYS do
    local rung = tonumber(redis.call('GET', KEYS[place]) or 0)
    rung = is_late and math.abs(rung) or math.max(rung, 0)
    if now - rung <= ringing then
        answer[place] = 0
    elseif rung == 0 or all_lost or newest - rung > ringing then
        redis.call('SET', KEYS[place], is_late and -now or now, 'EX', keep)
        answer[place] = 1
    else
        redis.call('EXPIRE', KEYS[place], keep)
        answer[place] = 2
    end
end
return answer
"""


def _raise_flags(
    queue_name: str, turn: Turn, bells: Sequence[Bell], *, all_lost: bool = False
) -> tuple[int, list[Bell], list[Bell]]:
    """Sets the flags of silent and lost bells. `all_lost`: the queue is known to be empty.

    Returns the time in Unix milliseconds, the bells whose flags were set, and the bells that are lost if the queue is
    empty.
    """
    keys = [_newest(queue_name), *(bell.flag for bell in bells)]
    limits = [int(RINGING_SECONDS * 1000), FLAG_SECONDS, int(all_lost), int(turn is Turn.LATE)]
    rung_at, *found = flags().eval(_RAISE, len(keys), *keys, *limits)
    silent = [bell for bell, state in zip(bells, found, strict=True) if state == 1]
    old = [bell for bell, state in zip(bells, found, strict=True) if state == 2]
    return rung_at, silent, old


def _newest(queue_name: str) -> str:
    return f"bells-taken-up:{queue_name}"


def _by_message(bells: Sequence[Bell]) -> Iterator[Sequence[Bell]]:
    size = min(max(LEAST_TOGETHER, math.isqrt(len(bells))), MOST_TOGETHER)
    return (bells[start : start + size] for start in range(0, len(bells), size))


def _send(queue_name: str, turn: Turn, together: Sequence[Bell], rung_at: int) -> None:
    # The actor of a queue has the queue's name, so the sender need not import it.
    message: Message[None] = Message(
        queue_name=queue_name,
        actor_name=queue_name,
        args=tuple(bell.owner for bell in together),
        kwargs={},
        options={} if turn is Turn.NEW else {OUT_OF_TURN: True},
        message_timestamp=rung_at,
    )
    brokers.send(message, {Turn.NEW: 1, Turn.AGAIN: random.random(), Turn.LATE: 0}[turn])


@cache
def _ringer() -> Ringer:
    return Ringer()
