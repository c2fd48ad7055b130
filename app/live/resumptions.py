"""Resumptions: a thread that sends reconnecting listeners the updates they missed.

Meanwhile the reader, in another thread, already sends them new updates, which each listener holds back until it has
caught up. Workspaces take turns, one page at a time, and so do the actors of a workspace. An actor that missed a lot,
or reconnects often, delays only itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import structlog

from app import bounds
from app.database import DatabaseAway, database
from app.domain.channels import chats
from app.domain.insight import updates
from app.domain.insight.updates import Forgotten, MissedTooMuch, StreamPosition, Update
from app.live import frames, streams
from app.live.listeners import Listener
from app.live.streams import Parcel
from app.live.update_reader import Reader

log = structlog.get_logger(__name__)

PAGE = 100  # updates sent in one turn: about ten milliseconds of work
# The most workspaces that take turns at once. Each may hold up to 5,000 missed updates in memory.
AT_ONCE = 20
PAUSE_SECONDS = 0.5  # the pause before retrying while the database is unavailable

# Called with the parcels to send, and the listeners that have caught up with the reader once these are sent.
Deliver = Callable[[Sequence[Parcel], Sequence[Listener]], None]


@dataclass(slots=True, eq=False)
class Resumption:
    """Listeners that resume from the same place, and their missed updates.

    `until`: where the reader takes over. `left`: the updates still to be sent.
    """

    place: StreamPosition
    listeners: dict[Listener, None]
    until: StreamPosition | None = None
    left: deque[Update] | None = None


@dataclass(slots=True)
class Queue:
    """A workspace's reconnecting listeners: those that wait, by actor, and the current resumption."""

    waiting: dict[str, dict[Listener, StreamPosition]] = field(default_factory=dict)
    current: Resumption | None = None


class Resumptions:
    """The thread that sends listeners their missed updates. Call `join` and `leave` from any thread.

    The thread calls `deliver` and `end`, in order.
    """

    def __init__(self, reader: Reader, deliver: Deliver, end: Callable[[Sequence[Listener]], None]) -> None:
        self._reader = reader
        self._deliver = deliver
        self._end = end
        self._queues: dict[str, Queue] = {}  # by workspace, in the order of their turns
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resumptions", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; returns when it has ended."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()
        self._thread.join()

    def join(self, listener: Listener, place: StreamPosition) -> None:
        """Queues the listener, which already holds back new updates, for what it missed since `place`."""
        with self._changed:
            queue = self._queues.setdefault(listener.admitted.workspace_id, Queue())
            queue.waiting.setdefault(listener.admitted.actor_id, {})[listener] = place
            self._changed.notify()

    def leave(self, listener: Listener) -> None:
        """Stops sending to a listener whose stream has ended. One page may still be on its way."""
        admitted = listener.admitted
        with self._changed:
            queue = self._queues.get(admitted.workspace_id)
            if queue is None:
                return
            _drop(queue.waiting, listener)
            if queue.current is not None:
                queue.current.listeners.pop(listener, None)
            elif not queue.waiting:
                del self._queues[admitted.workspace_id]

    def _run(self) -> None:
        while (found := self._next()) is not None:
            workspace_id, resumption = found
            is_done = False
            try:
                is_done = self._advance(workspace_id, resumption)
            except DatabaseAway as error:
                log.warning("live.database_away", error=str(error).strip())
                self._stopping.wait(PAUSE_SECONDS)
            except Exception:
                log.exception("live.resumption_failed")
                is_done = True
                self._end(self._listeners(resumption))  # the listeners reconnect
            self._put_back(workspace_id, is_done)
        database.close()

    def _next(self) -> tuple[str, Resumption] | None:
        """Waits for the next workspace to serve; returns it with its resumption, or None on `stop`."""
        with self._changed:
            self._changed.wait_for(lambda: self._queues or self._stopping.is_set())
            if self._stopping.is_set():
                return None
            begun = [workspace_id for workspace_id, queue in self._queues.items() if queue.current is not None]
            workspace_id = begun[0] if len(begun) >= AT_ONCE else next(iter(self._queues))
            queue = self._queues[workspace_id]
            if queue.current is None:
                queue.current = _begun(queue)
            return workspace_id, queue.current

    def _put_back(self, workspace_id: str, is_done: bool) -> None:
        with self._changed:
            queue = self._queues.pop(workspace_id)
            if is_done:
                queue.current = None
            if queue.current is not None or queue.waiting:
                self._queues[workspace_id] = queue

    def _advance(self, workspace_id: str, resumption: Resumption) -> bool:
        """Sends the next page. Returns whether the resumption is complete."""
        listeners = self._listeners(resumption)
        if not listeners:
            return True
        resumption.until = until = resumption.until or self._registered(listeners)
        if until is None:
            return False
        try:
            if resumption.left is None:
                resumption.left = deque(_missed(workspace_id, resumption.place, until, listeners[0]))
        except Forgotten as error:
            if isinstance(error, MissedTooMuch):
                bounds.LIVE_RESUMED.reached()
            self._deliver([Parcel(frames.reset(until, each.admitted), [each]) for each in listeners], listeners)
            return True
        page = list(islice(resumption.left, PAGE))
        sent = streams.parcels(page, page[-1].place, listeners) if page else []
        # Removed only now, so that a page that could not be built is tried again.
        for _ in page:
            resumption.left.popleft()
        if resumption.left:
            self._deliver(sent, [])
            return False
        # The last frame moves every listener to `until`, even those that were sent none of these updates.
        placed = [Parcel(frames.position(until, each.admitted), [each]) for each in listeners]
        self._deliver([*sent, *placed], listeners)
        return True

    def _listeners(self, resumption: Resumption) -> Sequence[Listener]:
        with self._changed:
            return list(resumption.listeners)

    def _registered(self, listeners: Sequence[Listener]) -> StreamPosition | None:
        """Adds the listeners to the reader, and returns the place where it takes over; None on `stop`."""
        places: list[StreamPosition] = []
        is_begun = threading.Event()

        def begin(place: StreamPosition) -> None:
            places.append(place)
            is_begun.set()

        self._reader.join(listeners, begin)
        while not is_begun.wait(PAUSE_SECONDS):
            if self._stopping.is_set():
                return None
        return places[0]


def _drop(waiting: dict[str, dict[Listener, StreamPosition]], listener: Listener) -> None:
    theirs = waiting.get(listener.admitted.actor_id, {})
    theirs.pop(listener, None)
    if not theirs:
        waiting.pop(listener.admitted.actor_id, None)


def _begun(queue: Queue) -> Resumption:
    """Takes the next actor's first listener off the queue, with others that missed the same updates."""
    actor_id = next(iter(queue.waiting))
    first, place = next(iter(queue.waiting[actor_id].items()))
    is_visitor = first.admitted.channel_id is not None
    alike = [
        listener
        for theirs in ([queue.waiting[actor_id]] if is_visitor else queue.waiting.values())
        for listener, at in theirs.items()
        if at == place and (listener.admitted.channel_id is not None) == is_visitor
    ]
    for listener in alike:
        _drop(queue.waiting, listener)
    if actor_id in queue.waiting:
        queue.waiting[actor_id] = queue.waiting.pop(actor_id)
    return Resumption(place, dict.fromkeys(alike))


def _missed(workspace_id: str, place: StreamPosition, until: StreamPosition, listener: Listener) -> Sequence[Update]:
    """Returns the missed updates; for a visitor, only of their own messages. Raises Forgotten."""
    admitted, most, own = listener.admitted, bounds.LIVE_RESUMED.most, None
    if admitted.channel_id is not None:
        own = chats.message_ids(admitted.channel_id, admitted.peer, most + 1)
        if len(own) > most:
            raise MissedTooMuch
    return streams.last_of_each(updates.read_missed(place, until, workspace_id, most, own))
