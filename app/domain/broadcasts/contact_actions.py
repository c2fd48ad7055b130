"""Actions: the interface by which a broadcast reaches contacts, and the possible outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.models.broadcasts import Broadcast
from app.models.contacts import Contact
from app.models.sets import Key


@dataclass(frozen=True, slots=True)
class Reached:
    """A contact that was reached, with the message or run that the contact got."""

    message_id: str | None = None
    run_id: str | None = None

    @property
    def outcome(self) -> str:
        """The outcome to store in the contact's row."""
        return "started" if self.message_id is None else "sent"


class Skipped(Exception):
    """The contact does not get the broadcast. `reason`: one of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooEarly(Exception):
    """The contact cannot be reached yet. `until`: when the contact's quiet hours end."""

    def __init__(self, until: datetime) -> None:
        super().__init__(until)
        self.until = until


class Action(Protocol):
    """Sends the message, or starts the automation, for each contact of a broadcast.

    One unit of work serves several contacts.
    """

    def problem(self) -> str | None:
        """Returns a sentence for people if the broadcast cannot proceed; None if it can."""

    def room(self) -> int:
        """Returns how many more contacts may be reached now, so that little is in progress at any time."""

    def needs(self, contact_ids: Sequence[str]) -> list[Key]:
        """Returns the keys to lock for the contacts."""

    def prefetch(self, contact_ids: Sequence[str], unit: Unit) -> None:
        """Reads further rows that `reach` needs, once the keys are locked."""

    def reach(self, contact_id: str, unit: Unit) -> Reached:
        """Reaches the contact. Raises Skipped, TooEarly, Busy."""


def contact_of(broadcast: Broadcast, contact_id: str, unit: Unit) -> Contact:
    """Returns the contact. Raises Skipped if it was deleted or has opted out, and Busy."""
    contact = unit.get(Contact, broadcast.workspace_id, "id", contact_id)
    if contact is None:
        raise Skipped("erased")
    if contact.opted_out:
        raise Skipped("opted_out")
    return contact


def change_of(broadcast: Broadcast, unit: Unit) -> Change:
    """Returns a change for a domain verb, with the broadcast as its cause."""
    cause = Cause(None, broadcast.trace_id)
    return Change(broadcast.workspace_id, {}, broadcast.id, "broadcasts", broadcast.created_by, cause, unit)
