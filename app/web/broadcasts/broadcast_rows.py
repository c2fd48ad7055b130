"""Rows of broadcasts: what happened to each contact, for pages and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.database import replica
from app.domain.broadcasts import broadcast_representations
from app.models.broadcasts import BroadcastRow
from app.models.contacts import Contact
from app.models.conversations import Message

# How many rows of a file are read at once.
BATCH = 500
_NAMES = ("first_name", "last_name", "email", "phone")


def messages_of(rows: Sequence[BroadcastRow]) -> dict[str, Message]:
    """Returns the messages of the rows, with their outcomes, by identifier."""
    wanted = [row.message_id for row in rows if row.message_id is not None]
    found = Message.select(Message.id, Message.status, Message.failure, Message.conversation_id)
    return {each.id: each for each in found.where(Message.id.in_(wanted))} if wanted else {}


def in_files(broadcast_id: str, outcome: str | None, replied: bool | None) -> Iterator[list[dict[str, Any]]]:
    """Yields the rows that match, in batches for a file, newest first, with contacts and outcomes."""
    last, part = _newest(broadcast_id, outcome, replied, None)
    while part:
        yield part
        last, part = _newest(broadcast_id, outcome, replied, last)


@replica.may_read
def _newest(
    broadcast_id: str, outcome: str | None, replied: bool | None, before: str | None
) -> tuple[str | None, list[dict[str, Any]]]:
    """Returns the number of the last row (None if there are none), and the rows as a file has them."""
    rows = BroadcastRow.newest(broadcast_id, outcome, replied, before, BATCH)
    return str(rows[-1].number) if rows else None, _flat(rows)


def _flat(rows: Sequence[BroadcastRow]) -> list[dict[str, Any]]:
    messages = messages_of(rows)
    people = {each.id: each for each in Contact.select().where(Contact.id.in_([row.contact_id for row in rows]))}
    found = []
    for row in rows:
        contact, message = people.get(row.contact_id), messages.get(row.message_id or "")
        named = {name: getattr(contact, name, None) for name in _NAMES}
        failure = message.failure if message else None
        told = {"status": message and message.status, "failure": failure and failure.get("code")}
        found.append({**broadcast_representations.represent_row(row), **named, **told})
    return found
