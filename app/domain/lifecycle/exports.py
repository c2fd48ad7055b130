"""Exports: everything stored about a contact, source by source, in batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from app.database import batches
from app.domain.automations import run_history
from app.domain.channels import media
from app.domain.contacts import bookings, sales
from app.domain.conversations import notes
from app.domain.deliveries import deliveries
from app.domain.lifecycle import erasures, merges
from app.domain.macros import drafts
from app.domain.work import audit, events
from app.lib import json
from app.models.base import OwnedModel
from app.models.bookings import Booking
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.notes import Note
from app.models.sales import Sale

# The members of an export besides `contact`, each a list.
SOURCES: Mapping[str, Callable[[Contact], Iterable[Any]]] = {
    "events": lambda contact: events.of_contact(contact.id),
    "deliveries": lambda contact: deliveries.of_contact(contact.id),
    "sales": lambda contact: map(sales.represent, _of_contact(Sale, contact)),
    "bookings": lambda contact: map(bookings.represent, _of_contact(Booking, contact)),
    "runs": lambda contact: run_history.of_contact(contact.id),
    "conversations": lambda contact: map(_all_of, _of_contact(Conversation, contact)),
    "messages": lambda contact: map(_with_files, _of_contact(Message, contact)),
    "notes": lambda contact: map(notes.represent, _of_contact(Note, contact)),
    "drafts": drafts.of_contact,
    "jobs": erasures.kept_jobs,
    "audit_log": lambda contact: audit.of_contact(contact.id),
}
PIECE_BYTES = 64 * 1024


def export(contact: Contact) -> Iterator[bytes]:
    """Yields the pieces of a JSON document with all data of the contact, in constant memory."""
    gathered, size = [], 0
    for piece in _pieces(contact):
        gathered.append(piece)
        size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


def _pieces(contact: Contact) -> Iterator[bytes]:
    yield b'{"data":{"contact":' + json.dumps(merges.represent(contact))
    for name, source in SOURCES.items():
        yield b',"%s":[' % name.encode()
        for number, item in enumerate(source(contact)):
            yield (b"," if number else b"") + json.dumps(item)
        yield b"]"
    yield b"}}"


def _of_contact(model: Any, contact: Contact) -> Iterator[Any]:
    """Yields the rows of a table that name the contact, oldest first, read in batches."""
    for batch in batches(f"SELECT id FROM {model._meta.table_name} WHERE contact_id = %s ORDER BY id", (contact.id,)):
        yield from model.select().where(model.id.in_(batch)).order_by(model.id)


def _with_files(message: Message) -> dict[str, Any]:
    return _all_of(message) | {"attachments": media.shown(message.attachments)}


def _all_of(row: OwnedModel) -> dict[str, Any]:
    return {name: value for name, value in row.__data__.items() if name != "workspace_id"}
