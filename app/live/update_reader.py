"""The update reader: reads updates once for all listeners of the process, and delivers them.

It polls fifty times a second while there are listeners, so it works without bells and without Redis.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from app import metrics
from app.database import DatabaseAway, database
from app.domain.insight import updates
from app.domain.insight.updates import Forgotten, StreamPosition, Update
from app.lib import clock, vitals
from app.live import frames, streams
from app.live.listeners import Listener
from app.live.streams import Parcel
from app.realtime import Sign

log = structlog.get_logger(__name__)

LOOKS_EVERY_SECONDS = 0.02
PAUSE_SECONDS = 0.5  # the pause before retrying while the database is unavailable
MOST_AT_ONCE = 1_000

# Called with the parcels to send, and the place that all listeners have reached once these are sent.
Deliver = Callable[[Sequence[Parcel], StreamPosition | None], None]
# Called with the place from which new listeners are sent everything.
Begun = Callable[[StreamPosition], None]


class Reader:
    """The thread that reads updates for listeners. Call `join`, `leave` and `show` from any thread.

    The reader's thread calls `deliver`, in order.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._calls: deque[Callable[[], None]] = deque()  # calls that other threads queue for the reader's thread
        self._awake = threading.Event()
        self._stopping = False
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._joining: list[tuple[Sequence[Listener], Begun]] = []
        self._place: StreamPosition | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._thread = vitals.start(self._run, "reader")

    def stop(self) -> None:
        """Ends the thread; returns when it has ended."""
        self._stopping = True
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def join(self, listeners: Sequence[Listener], begun: Begun) -> None:
        """Adds listeners. Calls `begun` with a place, then sends them all updates after that place.

        The place is no earlier than this call.
        """
        self._call(lambda: self._joining.append((listeners, begun)))

    def leave(self, listener: Listener) -> None:
        """Stops sending to a listener whose stream has ended. One batch may still be on its way."""
        self._call(partial(self._forget, listener))

    def show(self, sign: Sign) -> None:
        """Sends the sign to the listeners that may see it."""
        self._call(partial(self._show, sign))

    def _call(self, call: Callable[[], None]) -> None:
        self._calls.append(call)
        self._awake.set()

    def _run(self) -> None:
        while not self._stopping:
            self._awake.clear()
            try:
                self._round()
            except DatabaseAway as error:
                log.warning("live.database_away", error=str(error).strip())
                time.sleep(PAUSE_SECONDS)
            except Exception:
                log.exception("live.round_failed")
                time.sleep(PAUSE_SECONDS)
            # Without listeners, sleeps until the next one joins.
            self._awake.wait(LOOKS_EVERY_SECONDS if self._listeners or self._joining else None)
        database.close()

    def _round(self) -> None:
        while self._calls:
            self._calls.popleft()()
        if not self._listeners and not self._joining:
            self._place = None
            return
        if self._place is None:
            self._place = updates.present()
        else:
            self._read_on()
        # Reads on before admitting: a listener may come from another process that had read further.
        self._admit(self._place)

    def _show(self, sign: Sign) -> None:
        self._send(streams.signals(sign, self._listeners.get(sign.workspace_id, ())))

    def _forget(self, listener: Listener) -> None:
        workspace_id = listener.admitted.workspace_id
        if workspace_id in self._listeners:
            self._listeners[workspace_id].discard(listener)
            if not self._listeners[workspace_id]:
                del self._listeners[workspace_id]

    def _read_on(self) -> None:
        """Reads up to the present, and delivers the listeners' parcels."""
        was_within = True
        while self._place is not None and (was_within or self._place.until is not None):
            was_within = self._place.until is not None
            try:
                found, place = updates.read(self._place, MOST_AT_ONCE)
                parcels = self._parcels(found, place)
            except Forgotten:  # the database was away for an hour
                place = updates.present()
                listeners = [each for those in self._listeners.values() for each in those]
                parcels = [Parcel(frames.reset(place, each.admitted), [each]) for each in listeners]
            # Moves on only now, so that updates are read again if an earlier step fails.
            self._place = place
            self._send(parcels)

    def _parcels(self, found: Sequence[Update], behind: StreamPosition) -> list[Parcel]:
        by_workspace: dict[str, list[Update]] = defaultdict(list)
        for update in found:
            if update.workspace_id in self._listeners:
                by_workspace[update.workspace_id].append(update)
        parcels = []
        for workspace_id, those in by_workspace.items():
            parcels += streams.parcels(those, behind, self._listeners[workspace_id])
            metrics.LIVE_SECONDS.observe(max(0.0, (clock.now() - those[0].at).total_seconds()))
        return parcels

    def _send(self, parcels: Sequence[Parcel]) -> None:
        self._deliver(parcels, self._place)

    def _admit(self, place: StreamPosition) -> None:
        """Adds the joining listeners at `place`, which all other listeners have reached."""
        joining, self._joining = self._joining, []
        for listeners, begun in joining:
            for each in listeners:
                # A listener whose stream has ended may have left already.
                if not each.is_over:
                    self._listeners[each.admitted.workspace_id].add(each)
            begun(place)
