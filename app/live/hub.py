"""The hub: the open streams of the process, on its event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import structlog

from app import metrics
from app.database import DatabaseAway
from app.domain.updates import Place
from app.errors import BellhopError
from app.live import frames, listeners, presences
from app.live.listeners import Listener, Pass
from app.live.presences import Presences
from app.live.reader import Reader
from app.live.streams import Parcel
from app.realtime import Sign

log = structlog.get_logger(__name__)

Result = TypeVar("Result")
Door = Callable[[Mapping[str, str], Mapping[str, str]], Pass]
DOORS: Mapping[str, Door] = {"/live/workspace": listeners.member, "/live/chat": listeners.visitor}

CHECKED_EVERY_SECONDS = 60.0
COMMENT_SECONDS = 15.0  # proxies cut connections that are silent for a minute
# Spread, so that the listeners of a process that died do not all come back at once.
LEAST_RETRY_MS, MOST_RETRY_MS = 500, 2_500
CHECKS_AT_ONCE = 4


class Stream:
    """An open stream. `write` and `close` are those of its connection."""

    def __init__(self, door: str, asked: tuple[Mapping[str, str], Mapping[str, str]], listener: Listener) -> None:
        self.door = door
        self.asked = asked
        self.listener = listener
        self.check: asyncio.TimerHandle | None = None


class Hub:
    """Admits listeners, checks every minute that they may still listen, and sends them what the reader finds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._threads = ThreadPoolExecutor(CHECKS_AT_ONCE, thread_name_prefix="checks")
        self.reader = Reader(lambda parcels, place: self._soon(self._deliver, parcels, place))
        self._streams: dict[Listener, Stream] = {}
        # Those that have been sent where they are.
        self._placed: set[Listener] = set()
        self._place: Place | None = None
        self._presences = Presences()
        self._is_stopping = False

    def start(self) -> None:
        """Begins to look for updates, and to send comments."""
        self.reader.start()
        self._loop.call_later(COMMENT_SECONDS, self._comment)

    def stop(self) -> None:
        """Ends its threads."""
        self._is_stopping = True
        self.reader.stop()
        self._threads.shutdown(cancel_futures=True)

    async def admit(self, door: str, headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
        """Who asks for the stream. Raises BellhopError, DatabaseAway."""
        return await self.run(partial(DOORS[door], headers, query))

    async def run(self, work: Callable[[], Result]) -> Result:
        """Does the work, which may wait for the database, in a thread."""
        return await self._loop.run_in_executor(self._threads, work)

    def open(self, stream: Stream) -> None:
        """Sends the listener what it has missed, and everything from then on."""
        self._streams[stream.listener] = stream
        metrics.LISTENERS.labels(stream.door.rpartition("/")[2]).inc()
        stream.listener.send(frames.beginning(random.randint(LEAST_RETRY_MS, MOST_RETRY_MS)))
        self._check_later(stream)
        self.reader.join(stream.listener)
        self._show(self._presences.come(stream.listener.admitted))

    def close(self, stream: Stream) -> None:
        """Forgets the stream. Safe to repeat."""
        if self._streams.pop(stream.listener, None) is None:
            return
        self._placed.discard(stream.listener)
        metrics.LISTENERS.labels(stream.door.rpartition("/")[2]).dec()
        if stream.check is not None:
            stream.check.cancel()
        self.reader.leave(stream.listener)
        self._show(self._presences.go(stream.listener.admitted))

    def hear(self, sign: Sign) -> None:
        """Sends the sign to those who may see it, or checks the streams that it is about. Call it from any thread."""
        if sign.kind == "joined":
            self._soon(self._check_all_of, sign.author_id)
        else:
            self.reader.show(sign)

    def _soon(self, call: Callable[..., object], *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self, parcels: Sequence[Parcel], place: Place | None) -> None:
        for parcel in parcels:
            for listener in parcel.listeners:
                if listener in self._streams:
                    listener.send(parcel.data)
                    self._placed.add(listener)
        self._place = place
        metrics.LIVE_SENT.inc(sum(len(parcel.listeners) for parcel in parcels))

    def _comment(self) -> None:
        said = frames.comment(self._place)
        for listener in list(self._placed):
            listener.send(said)
        self._show(self._presences.all())
        self._loop.call_later(COMMENT_SECONDS, self._comment)

    def _show(self, signs: Sequence[Sign]) -> None:
        if signs and not self._is_stopping:
            self._threads.submit(presences.show, signs)

    def _check_all_of(self, actor_id: str) -> None:
        for stream in self._streams.values():
            if stream.listener.admitted.actor_id == actor_id:
                self._check_in(0, stream)

    def _check_later(self, stream: Stream) -> None:
        self._check_in(CHECKED_EVERY_SECONDS * random.uniform(0.75, 1.0), stream)

    def _check_in(self, pause: float, stream: Stream) -> None:
        if stream.check is not None:
            stream.check.cancel()
        stream.check = self._loop.call_later(pause, lambda: self._loop.create_task(self._check(stream)))

    async def _check(self, stream: Stream) -> None:
        try:
            admitted = await self.admit(stream.door, *stream.asked)
        except BellhopError:
            admitted = None
        except DatabaseAway:  # says nothing about the listener
            admitted = stream.listener.admitted
        except Exception:
            log.exception("live.check_failed")
            admitted = stream.listener.admitted
        if stream.listener not in self._streams:
            return
        if admitted == stream.listener.admitted:
            self._check_later(stream)
            return
        # Also if it may now listen to something else: it comes back, and is admitted to that.
        metrics.LIVE_DROPPED.labels("refused").inc()
        stream.listener.end()
