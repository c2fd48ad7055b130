"""Units of work: read and lock the rows of many tasks at once, change them in memory, and write.

Each table is written once. Everything that changes contacts, sales, bookings or runs uses a unit: a workspace's writes,
the lines of an import, automation runs. Units may run concurrently on the same contacts: a contact's row is its lock.

A unit never waits for a lock. It stops before a task that needs a row or key that another transaction has locked. The
caller commits the tasks before that one, and retries the rest a few milliseconds later. So units cannot deadlock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from app.domain.work.events import Recorder
from app.models import sets
from app.models.automations import AutomationDelta, Counted, Enrolment
from app.models.base import OwnedModel
from app.models.bookings import Booking
from app.models.contacts import Contact, ContactSegment
from app.models.conversations import Conversation, Message
from app.models.identities import Identity, PendingMerge, SuggestedMerge
from app.models.members import Member
from app.models.notes import Note
from app.models.notifications import Notification
from app.models.read_receipts import ReadReceipt
from app.models.runs import Run, RunRequest, RunStep
from app.models.sales import Sale
from app.models.sets import Key
from app.models.uploads import Upload
from app.models.waiting_starts import WaitingStart

Row = TypeVar("Row", bound=OwnedModel)
T = TypeVar("T")

# In the order in which they are written.
_MODELS: tuple[type[OwnedModel], ...] = (
    *(Contact, Identity, Sale, Booking, Conversation, Message, Note, Upload, Enrolment, Run, WaitingStart, Member),
)
# In the order in which they are read: bookings and identities lead to contacts.
_READ: tuple[type[OwnedModel], ...] = (
    *(Booking, Sale, Identity, Contact, Conversation, Message, Note, Upload, Enrolment, Run, WaitingStart, Member),
)
_APPENDED: tuple[type[OwnedModel], ...] = (*(RunStep, RunRequest, ReadReceipt, SuggestedMerge, PendingMerge),)


# How long the tasks of a unit may compute before it commits, which unlocks its rows. PostgreSQL ends a transaction that
# is idle for ten seconds.
LONG_SECONDS = 0.5


class Busy(Exception):
    """Another transaction has locked a row or key that the task needs. Nothing was done; retry soon."""


class Unit:
    """The rows that a transaction has read and locked, the rows it will write, and its events.

    Rows are immutable: to change one, `put` an altered copy. `notes` hold facts that modules remember for the life of
    the unit, under keys of their own. If a task is undone, so are its notes.
    """

    def __init__(self) -> None:
        self.notes: dict[Hashable, Any] = {}
        self._stored: dict[Key, Any] = {}  # None: the row does not exist, and no other transaction can create it
        self._written: dict[Key, Any] = {}
        self._busy: set[Key] = set()
        self._appended: list[Any] = []
        self._counted: list[tuple[Counted, int]] = []
        self._recorders: dict[str, Recorder] = {}
        self.computed = 0  # template steps that runs have rendered in this unit
        self._now: datetime | None = None
        self._began = time.monotonic()

    def begin_tasks(self) -> None:
        """Starts the clock of `is_long`. Call it after the reads, which do not count as computing."""
        self._began = time.monotonic()

    @property
    def is_long(self) -> bool:
        """Whether the tasks have lasted longer than LONG_SECONDS, so that no further one should begin."""
        return time.monotonic() - self._began > LONG_SECONDS

    @property
    def now(self) -> datetime:
        """The database's time at the unit's last read, no earlier than any change that it has seen."""
        assert self._now is not None
        return self._now

    def get(self, model: type[Row], workspace_id: str, name: str, value: str) -> Row | None:
        """Returns the row with that key, as changed by this unit; None if there is none. Raises Busy.

        Until the transaction ends, no other can change the row, or create one with a key other than `id`. A key that
        was not read before costs one to three statements now.
        """
        key = sets.key(model, workspace_id, name, value)
        found: Row | None
        if key in self._written:
            found = self._written[key]
            return found
        if not self._has(key):
            self.read([key])
        if key in self._busy:
            raise Busy
        found = self._stored[key]
        return found

    def noted(self, note: Hashable, find: Callable[[], T]) -> T:
        """Returns the fact remembered as `note`. Calls `find` and remembers its result if there is none."""
        if note not in self.notes:
            self.notes[note] = find()
        known: T = self.notes[note]
        return known

    def put(self, row: Row) -> Row:
        """Schedules the row to be written, and returns it. Replaces the row with the same id, if any.

        The caller must have called `get` for each key that the row gains.
        """
        keys = list(sets.keys_of(row))
        before = self._written.get(keys[0], self._stored.get(keys[0]))
        if before is not None:
            self._written |= dict.fromkeys(sets.keys_of(before))
        self._written |= dict.fromkeys(keys, row)
        return row

    def drop(self, row: Any) -> None:
        """Schedules the row to be deleted. Rows that this unit puts may take its keys at once."""
        self._written |= dict.fromkeys(sets.keys_of(row))

    def is_new(self, model: type[OwnedModel], workspace_id: str, row_id: str) -> bool:
        """Returns whether this unit creates the row with that id."""
        key = sets.key(model, workspace_id, "id", row_id)
        return self._written.get(key) is not None and self._stored.get(key) is None

    def changed(self, model: type[Row]) -> list[Row]:
        """Returns the rows of the model that will be written, new and changed, in their latest state."""
        written = self._written.items()
        return [row for key, row in written if key.model is model and key.name == "id" and row is not None]

    def append(self, row: Any) -> None:
        """Schedules a new row that nothing in this unit will `get`."""
        self._appended.append(row)

    def is_free(self, key: Key) -> bool:
        """Returns whether no other transaction has locked the row or key. The unit must have read it."""
        return key not in self._busy

    def count(self, counted: Counted, amount: int) -> None:
        """Adds `amount` to one of an automation's counts, when the unit is written."""
        self._counted.append((counted, amount))

    @property
    def recorders(self) -> Sequence[Recorder]:
        """The recorders of all workspaces that `recorder` was called for."""
        return list(self._recorders.values())

    def recorder(self, workspace_id: str) -> Recorder:
        """Returns the recorder of the workspace's events, which are written with the rows."""
        return self._recorders.setdefault(workspace_id, Recorder(workspace_id))

    def read(self, keys: Iterable[Key]) -> None:
        """Reads and locks rows that it does not have, and the contacts of their bookings and identities."""
        wanted = dict.fromkeys(keys)
        for model in _READ:
            sought = [key for key in wanted if key.model is model and not self._has(key) and key not in self._written]
            if not sought:
                continue
            self._lock(model, sought)
            # A row may be created with these keys. Reserve them, then look again: another transaction may have just
            # created it.
            if absent := [key for key in sought if key.name != "id" and not self._has(key)]:
                reserved = sets.reserve(absent)
                self._busy |= set(absent) - reserved
                if reserved:
                    self._lock(model, list(reserved))
            self._stored |= dict.fromkeys(key for key in sought if not self._has(key))
            if model in (Booking, Identity):
                found = [self._stored[key] for key in sought if self._stored.get(key)]
                wanted |= dict.fromkeys(Key(Contact, row.workspace_id, "id", row.contact_id) for row in found)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Undoes everything that the block put, counted, noted and recorded if the block raises."""
        written, appended, counted = dict(self._written), len(self._appended), len(self._counted)
        notes = dict(self.notes)
        marks = {workspace_id: recorder.mark() for workspace_id, recorder in self._recorders.items()}
        try:
            yield
        except BaseException:
            self._written, self.notes = written, notes
            del self._appended[appended:], self._counted[counted:]
            for workspace_id, recorder in self._recorders.items():
                recorder.forget_after(marks.get(workspace_id, 0))
            raise

    def write(self) -> None:
        """Writes each table with one statement each for new, changed and dropped rows. Call it once."""
        final = {key: row for key, row in self._written.items() if key.name == "id"}
        for model in _MODELS:
            of_model = {key: row for key, row in final.items() if key.model is model}
            if dropped := [key.value for key, row in of_model.items() if row is None]:
                sets.delete(model, dropped)
            rows = {key: row for key, row in of_model.items() if row is not None}
            # Updates first: a new row may take a key that a changed row gave up.
            if changed := [row for key, row in rows.items() if self._stored.get(key) is not None]:
                sets.update(model, changed)
            if new := [row for key, row in rows.items() if self._stored.get(key) is None]:
                if model is Contact:
                    ContactSegment.open_before(new)
                sets.insert(model, new)
        for model in _APPENDED:
            if appended := [row for row in self._appended if type(row) is model]:
                sets.insert(model, appended)
        Notification.add(row for row in self._appended if type(row) is Notification)
        if deltas := AutomationDelta.summed(self._counted):
            sets.insert(AutomationDelta, deltas)

    def _lock(self, model: type[OwnedModel], keys: Sequence[Key]) -> None:
        self._now, found = sets.lock(model, keys)
        for key, row in found:
            if row is None:
                self._busy.add(key)
            else:
                self._stored |= dict.fromkeys(sets.keys_of(row), row)

    def _has(self, key: Key) -> bool:
        return key in self._stored or key in self._busy
