"""The hub: holds the open streams of the process, on its event loop."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import redis
import structlog

from app import bounds, metrics, realtime
from app.database import DatabaseAway
from app.domain.insight.updates import Forgotten, StreamPosition
from app.errors import BellhopError
from app.live import frames, listeners, online_members, places
from app.live.admissions import Checks
from app.live.listeners import Listener, Pass
from app.live.online_members import OnlineMembers
from app.live.resumptions import Resumptions
from app.live.streams import Parcel
from app.live.update_reader import Reader
from app.realtime import Sign

log = structlog.get_logger(__name__)

Asked = tuple[Mapping[str, str], Mapping[str, str]]  # headers and query


@dataclass(frozen=True, slots=True)
class Door:
    """A kind of stream: `credential` finds the credential in headers, and `admit` checks it."""

    credential: Callable[[Mapping[str, str]], str]
    admit: Callable[[Mapping[str, str], Mapping[str, str]], Pass]


DOORS: Mapping[str, Door] = {
    "/live/workspace": Door(listeners.workspace_credential, listeners.of_workspace),
    "/live/chat": Door(listeners.visitor_token, listeners.visitor),
}

CHECKED_EVERY_SECONDS = 60.0
COMMENT_SECONDS = 15.0  # proxies cut connections that are silent for a minute
# A random delay, so that the listeners of a process that died do not all reconnect at once.
LEAST_RETRY_MS, MOST_RETRY_MS = 500, 2_500
RETRY_REPLACED_MS = 60_000
REDIS_PAUSE_SECONDS = 1.0


@dataclass(slots=True, eq=False, kw_only=True)
class Stream(Listener):
    """A listener with the headers and query of its request: `asked`. `check`: the next check.

    `place`: the sealed place after which the stream continues; "" if the request named none.
    """

    door: str
    asked: Asked
    address: str
    place: str
    check: asyncio.TimerHandle | None = None


class Hub:
    """Admits listeners, checks every minute that they may still listen, and sends them their updates."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.checks = Checks(loop)
        self.reader = Reader(partial(self._soon, self._deliver))
        self._resumptions = Resumptions(self.reader, partial(self._soon, self._resume), partial(self._soon, _end))
        self._streams: set[Stream] = set()
        self._of_actors: dict[str, dict[Stream, None]] = defaultdict(dict)  # each actor's oldest stream first
        # Listeners that have been sent a place. Only comments to these name the current place.
        self._placed: set[Listener] = set()
        self._place: StreamPosition | None = None
        self._presences = OnlineMembers()
        self._is_stopping = False

    def start(self) -> None:
        """Starts the threads that read updates, and the timer for comments."""
        self.reader.start()
        self._resumptions.start()
        self._loop.call_later(COMMENT_SECONDS, self._comment)

    def stop(self) -> None:
        """Ends the hub's threads; returns when they have ended."""
        self._is_stopping = True
        self._resumptions.stop()
        self.reader.stop()
        self.checks.stop()

    async def admit(
        self, door: str, asked: Asked, address: str, is_over: Callable[[], bool] = lambda: False
    ) -> Pass | None:
        """Returns the permission of a listener; None if `is_over()` is true before the check.

        Raises BellhopError if the listener is refused, and DatabaseAway.
        """
        return await self.checks.run(address, partial(DOORS[door].admit, *asked), is_over)

    def open(self, stream: Stream) -> None:
        """Sends the listener the updates it missed, and all new ones from then on.

        Ends the actor's oldest stream if the actor has too many.
        """
        self._make_room(stream.admitted.actor_id)
        self._of_actors[stream.admitted.actor_id][stream] = None
        self._streams.add(stream)
        metrics.LISTENERS.labels(stream.door.rpartition("/")[2]).inc()
        stream.send(frames.retry(random.randint(LEAST_RETRY_MS, MOST_RETRY_MS)))
        self._check_later(stream)
        self._join(stream)
        self._show(self._presences.come(stream.admitted))

    def _make_room(self, actor_id: str) -> None:
        """Ends the actor's oldest stream if the actor is at the limit of streams."""
        theirs = self._of_actors[actor_id]
        if len(theirs) < bounds.LIVE_STREAMS_PER_ACTOR.most:
            return
        bounds.LIVE_STREAMS_PER_ACTOR.reached()
        metrics.LIVE_DROPPED.labels("replaced").inc()
        oldest = next(iter(theirs))
        # The long pause prevents a cycle: with one page too many open, the pages would keep ending each other's
        # streams.
        oldest.send(frames.retry(RETRY_REPLACED_MS))
        oldest.end()
        self.close(oldest)

    def _join(self, stream: Stream) -> None:
        if not stream.place:
            self.reader.join([stream], partial(self._soon, self._begin, stream, frames.position))
            return
        try:
            at = places.unseal(stream.place, stream.admitted)
        except Forgotten:
            self.reader.join([stream], partial(self._soon, self._begin, stream, frames.reset))
            return
        stream.held = []
        self._resumptions.join(stream, at)

    def _begin(self, listener: Listener, frame: Callable[[StreamPosition, Pass], bytes], place: StreamPosition) -> None:
        self._deliver([Parcel(frame(place, listener.admitted), [listener])], place)

    def close(self, stream: Stream) -> None:
        """Removes the stream from the hub. Safe to repeat."""
        if stream not in self._streams:
            return
        self._streams.remove(stream)
        stream.is_over = True
        self._placed.discard(stream)
        theirs = self._of_actors[stream.admitted.actor_id]
        del theirs[stream]
        if not theirs:
            del self._of_actors[stream.admitted.actor_id]
        metrics.LISTENERS.labels(stream.door.rpartition("/")[2]).dec()
        if stream.check is not None:
            stream.check.cancel()
        self._resumptions.leave(stream)
        self.reader.leave(stream)
        self._show(self._presences.go(stream.admitted))

    def hear_signs(self) -> None:
        """Receives signs, such as typing, from Redis as long as the process lives. Call it in a thread.

        Sends each sign to the listeners that may see it. For a sign of kind `admission`, checks the streams that it
        names instead. While Redis is away, signs are lost.
        """
        while True:
            try:
                for sign in realtime.signs():
                    if sign is not None:
                        self._hear(sign)
            except redis.RedisError as error:
                metrics.REDIS_AWAY.inc()
                log.info("live.redis_away", error=str(error))
            time.sleep(REDIS_PAUSE_SECONDS)

    def _hear(self, sign: Sign) -> None:
        if sign.kind == "admission":
            self._soon(self._check_all_of, sign.author_type, sign.author_id)
        else:
            self.reader.show(sign)

    def _soon(self, call: Callable[..., object], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self, parcels: Sequence[Parcel], place: StreamPosition | None) -> None:
        for parcel in parcels:
            for listener in parcel.listeners:
                if listener in self._streams:
                    listener.receive(parcel.data)
                    if listener.held is None:
                        self._placed.add(listener)
        self._place = place
        metrics.LIVE_SENT.inc(sum(len(parcel.listeners) for parcel in parcels))

    def _resume(self, parcels: Sequence[Parcel], resumed: Sequence[Listener]) -> None:
        for parcel in parcels:
            for listener in parcel.listeners:
                if listener in self._streams:
                    listener.send(parcel.data)
        for listener in resumed:
            if listener in self._streams:
                listener.release()
                self._placed.add(listener)
        metrics.LIVE_SENT.inc(sum(len(parcel.listeners) for parcel in parcels))

    def _comment(self) -> None:
        said: dict[tuple[str, bool], bytes] = {}
        for listener in list(self._streams):
            is_placed = listener in self._placed
            key = listener.admitted.actor_id, is_placed
            if key not in said:
                said[key] = frames.comment(self._place if is_placed else None, listener.admitted)
            listener.send(said[key])
        self._show(self._presences.all())
        self._loop.call_later(COMMENT_SECONDS, self._comment)

    def _show(self, signs: Sequence[Sign]) -> None:
        if signs and not self._is_stopping:
            self.checks.submit(partial(online_members.show, signs))

    def _check_all_of(self, who: str, identifier: str) -> None:
        if who == "account":
            theirs = [each for each in self._streams if each.admitted.account_id == identifier]
        else:
            theirs = list(self._of_actors.get(identifier, ()))
        for stream in theirs:
            self._check_in(0, stream)

    def _check_later(self, stream: Stream) -> None:
        self._check_in(CHECKED_EVERY_SECONDS * random.uniform(0.75, 1.0), stream)

    def _check_in(self, pause: float, stream: Stream) -> None:
        if stream.check is not None:
            stream.check.cancel()
        stream.check = self._loop.call_later(pause, lambda: self._loop.create_task(self._check(stream)))

    async def _check(self, stream: Stream) -> None:
        try:
            admitted = await self.admit(stream.door, stream.asked, stream.address)
        except BellhopError:
            admitted = None
        except DatabaseAway:  # this proves nothing about the listener
            admitted = stream.admitted
        except Exception:
            log.exception("live.check_failed")
            admitted = stream.admitted
        if stream not in self._streams:
            return
        if admitted == stream.admitted:
            self._check_later(stream)
            return
        # A changed permission also ends the stream: the listener reconnects, and is admitted with the new one.
        metrics.LIVE_DROPPED.labels("refused").inc()
        stream.end()


def _end(listeners: Sequence[Listener]) -> None:
    for each in listeners:
        each.end()
