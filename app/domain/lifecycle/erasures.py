"""Erasures: remove a deleted contact's data from every table, without waiting for any lock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.database import rows
from app.domain.automations import run_history
from app.domain.channels import arrivals, media
from app.domain.contacts import contacts
from app.domain.conversations import conversations, message_statuses, messages
from app.domain.deliveries import deliveries
from app.domain.jobs.parts import lock_first
from app.domain.macros import drafts
from app.domain.work import events
from app.domain.work.changes import Change, Effect
from app.domain.work.units import Busy
from app.lib import phones
from app.models.contacts import Contact
from app.models.identities import Identity, SuggestedMerge
from app.models.sales import Sale

# The most rows that one transaction finds, locks and erases in a table.
PART = 200


@dataclass(frozen=True, slots=True)
class _Part:
    """The erased part of a table: how many rows, the last one, and whether the table is done."""

    rows: int
    after: str
    is_end: bool


def delete(change: Change) -> Effect | None:
    """Erases the contact's data everywhere, one part in each call. Raises NotFound, Busy.

    Returns None while there is more. Bookings and notes are deleted. Sales stay for the books, without the contact.
    Runs are cancelled; runs, conversations and messages stay without the contact's data.
    """
    if change.progress is None:
        _begin(change, contacts.find(change.workspace_id, change.target, change.unit))
        return None
    return Effect("deleted", "contact", change.target) if _go_on(change) else None


def erase_late(change: Change) -> bool:
    """Erases the next rows that the target got after its deletion; True if none is left. Raises Busy."""
    if "after" not in (change.progress or {}):
        change.keep(table="events", after="")
        return False
    return _go_on(change)


def kept_jobs(contact: Contact) -> Iterator[dict[str, Any]]:
    """Returns jobs about a contact that still have a payload: waiting ones and unexpected failures."""
    found = rows(
        f"""
        SELECT id, kind, status, payload, created_at FROM jobs WHERE {_IS_KEPT}
        UNION ALL
        SELECT id, kind, status, payload, created_at FROM jobs WHERE resource_id = %(id)s AND due_at IS NOT NULL
        ORDER BY id
        """,
        _marks(contact.workspace_id, contact.id, _identifiers(contact)),
    )
    return (dict(zip(("id", "kind", "status", "payload", "created_at"), job, strict=True)) for job in found)


def _begin(change: Change, contact: Contact) -> None:
    """Deletes the contact, which the unit has locked, and erases its first events. Raises Busy."""
    Contact.delete().where(Contact.id == contact.id).execute()
    _erase_kept_payloads(contact.workspace_id, contact.id, _identifiers(contact))
    _erase_in_channels(contact)
    change.events.record("contact.deleted", {"contact": {"id": contact.id}}, contact.id)
    _keep_progress(change, "events", _erase_part(change, "events", ""))


def _go_on(change: Change) -> bool:
    """Erases the next rows; returns whether no more are left.

    Events come first, deliveries second: once the erased events are committed, no new attempt can send or log the data.
    Raises Busy if another transaction has locked the next row.
    """
    assert change.progress is not None
    table, after = change.progress["table"], change.progress["after"]
    erased = 0
    for each in _TABLES[_TABLES.index(table) :]:
        part = _erase_part(change, each, after)
        erased, after = erased + part.rows, ""
        if not part.is_end or erased >= PART or each == "events":
            _keep_progress(change, each, part)
            return part.is_end and each == _TABLES[-1]
    return True


def _erase_part(change: Change, table: str, after: str) -> _Part:
    if table == "run_steps":
        return _erase_log(change, after)
    if table == "uploads":
        return _erase_files(change, after)
    found = _next(change, table, after)
    erased = lock_first(table, found)
    if erased:
        _ERASE[table](change, erased)
    return _Part(len(erased), erased[-1] if erased else after, len(erased) == len(found) < PART)


def _erase_log(change: Change, after: str) -> _Part:
    """Erases logs, which are found by their runs. `after`: the last run that is done."""
    run_ids = _next(change, "runs", after)
    erased = run_history.erase_log(run_ids, PART)
    if erased == PART:
        return _Part(erased, after, is_end=False)
    return _Part(erased, run_ids[-1] if run_ids else after, len(run_ids) < PART)


def _erase_files(change: Change, after: str) -> _Part:
    """Erases files, which are found by their messages. `after`: the last message that is done."""
    message_ids = _next(change, "messages", after)
    _delete_files_of(message_ids)
    return _Part(len(message_ids), message_ids[-1] if message_ids else after, len(message_ids) < PART)


def _next(change: Change, table: str, after: str) -> list[str]:
    marks = {"id": change.target, "after": after, "limit": PART}
    return [id for (id,) in rows(_NEXT.format(table=table, own=_OWN.get(table, "contact_id = %(id)s")), marks)]


def _keep_progress(change: Change, table: str, part: _Part) -> None:
    if part.is_end and table != _TABLES[-1]:
        change.keep(table=_TABLES[_TABLES.index(table) + 1], after="")
    else:
        change.keep(table=table, after=part.after)


def _erase_events(change: Change, event_ids: list[str]) -> None:
    _erase_kept_payloads(change.workspace_id, change.target, events.erase(event_ids))


def _erase_runs(change: Change, run_ids: list[str]) -> None:
    _delete_files_of(run_ids)
    run_history.erase(change.unit, change.workspace_id, run_ids)


def _erase_conversations(conversation_ids: list[str]) -> None:
    drafts.erase(conversation_ids)
    conversations.erase(conversation_ids)


def _erase_kept_payloads(workspace_id: str, contact_id: str, known: Collection[str]) -> None:
    rows(f"UPDATE jobs SET payload = NULL, broke = NULL WHERE {_IS_KEPT}", _marks(workspace_id, contact_id, known))


def _marks(workspace_id: str, contact_id: str, known: Collection[str]) -> dict[str, Any]:
    written = [way for each in known for way in phones.ways_to_write(each)]
    return {"workspace_id": workspace_id, "id": contact_id, "known": written}


def _identifiers(contact: Contact) -> list[str]:
    own = (contact.external_id, contact.email, contact.phone)
    at_providers = (row.external_id for row in Identity.select().where(Identity.contact_id == contact.id))
    return [value for value in (*own, *at_providers) if value is not None]


def _erase_in_channels(contact: Contact) -> None:
    """Ends unsent messages; erases arrivals, visitors, identities and suggested merges. Raises Busy."""
    _end_waiting(contact)
    _forget_arrivals(contact)
    _forget_visitors(contact)
    Identity.delete().where(Identity.contact_id == contact.id).execute()
    named = (SuggestedMerge.contact_id == contact.id) | (SuggestedMerge.other_id == contact.id)
    SuggestedMerge.delete().where(named).execute()


def _delete_files_of(owner_ids: Sequence[str]) -> None:
    """Deletes the files of these messages or runs, and those still to be fetched. Safe to repeat.

    A file is gone at once, even if the transaction fails; its row is then erased the next time. Raises Busy.
    """
    owned = "SELECT id FROM uploads WHERE message_id = ANY(%s) UNION SELECT id FROM uploads WHERE run_id = ANY(%s)"
    found = {id for (id,) in rows(owned, (list(owner_ids), list(owner_ids)))}
    # Storing a file locks its row, then its message. Waiting for the row could deadlock.
    lock = "SELECT id FROM uploads WHERE id = ANY(%s) ORDER BY id FOR UPDATE SKIP LOCKED"
    free = [id for (id,) in rows(lock, (list(found),))]
    if len(free) < len(found):
        raise Busy
    media.delete_files(free)


def _end_waiting(contact: Contact) -> None:
    """Ends messages that have not been sent. Messages being sent now are erased with the others."""
    rows(
        f"""
        UPDATE messages SET failure = %s::json, {message_statuses.ENDING}
        WHERE id IN (
            SELECT id FROM messages
            WHERE conversation_id = ANY(ARRAY(SELECT id FROM conversations WHERE contact_id = %s))
                AND (is_behind OR due_at IS NOT NULL OR send_at IS NOT NULL) AND status IN ('scheduled', 'queued')
            FOR NO KEY UPDATE SKIP LOCKED)
        """,
        (message_statuses.ERASED, contact.id),
    )


def _forget_arrivals(contact: Contact) -> None:
    """Empties arrivals from the contact that are not processed yet.

    Otherwise they would bring the erased contact back. Arrivals that come later create a new contact. Raises Busy if a
    worker is about to process one.
    """
    senders = rows(
        """
        SELECT channels.id, external_id FROM identities
        JOIN channels ON channels.workspace_id = identities.workspace_id AND channels.kind = channel_kind
        WHERE contact_id = %(id)s
        UNION
        SELECT channel_id, visitors.id FROM channels JOIN visitors ON channel_id = channels.id
        WHERE channels.workspace_id = %(workspace_id)s AND user_id = %(user_id)s
        """,
        {"id": contact.id, "workspace_id": contact.workspace_id, "user_id": contact.external_id},
    )
    keys = [arrivals.sender_key(*each) for each in senders]
    found = rows(
        """
        SELECT id FROM arrivals WHERE sender_key = ANY(%s) AND due_at IS NOT NULL
        UNION
        SELECT id FROM arrivals
        WHERE due_at IS NULL AND (problem IS NOT NULL OR next_attempt_at IS NOT NULL) AND sender_key = ANY(%s)
        """,
        (keys, keys),
    )
    arrival_ids = [arrival_id for (arrival_id,) in found]
    lock = "SELECT id FROM arrivals WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED"
    if len(rows(lock, (arrival_ids,))) < len(arrival_ids):
        raise Busy
    rows(
        """
        UPDATE arrivals
        SET payload = NULL, problem = NULL, next_attempt_at = NULL, due_at = NULL, leased_until = NULL,
            sender_key = channel_id
        WHERE id = ANY(%s)
        """,
        (arrival_ids,),
    )


def _forget_visitors(contact: Contact) -> None:
    """Deletes the contact's visitors, whose tokens stop working."""
    rows(
        """
        DELETE FROM visitors WHERE id IN (
            SELECT external_id FROM identities WHERE contact_id = %(id)s AND channel_kind = 'web_chat'
            UNION ALL
            SELECT visitors.id FROM channels JOIN visitors ON channel_id = channels.id
            WHERE channels.workspace_id = %(workspace_id)s AND user_id = %(user_id)s)
        """,
        {"id": contact.id, "workspace_id": contact.workspace_id, "user_id": contact.external_id},
    )


# How the locked rows of each table are erased, in this order.
_ERASE: Mapping[str, Callable[[Change, list[str]], object]] = {
    "events": _erase_events,
    "deliveries": lambda change, ids: deliveries.erase(ids),
    "bookings": lambda change, ids: rows("DELETE FROM bookings WHERE id = ANY(%s)", (ids,)),
    "sales": lambda change, ids: Sale.forget_contact(ids),
    "runs": _erase_runs,
    "messages": lambda change, ids: messages.erase(ids),
    "notes": lambda change, ids: rows("DELETE FROM notes WHERE id = ANY(%s)", (ids,)),
    "conversations": lambda change, ids: _erase_conversations(ids),
    "enrolments": lambda change, ids: rows("DELETE FROM enrolments WHERE id = ANY(%s)", (ids,)),
}
# Logs come after their runs: once these are finished, the logs do not grow. Files come before the messages that name
# them.
_TABLES = [
    table
    for each in _ERASE
    for table in {"runs": ("runs", "run_steps"), "messages": ("uploads", "messages")}.get(each, (each,))
]

_NEXT = "SELECT id FROM {table} WHERE {own} AND id > %(after)s ORDER BY id LIMIT %(limit)s"
_OWN = {"enrolments": "id > %(id)s || '/' AND id < %(id)s || '0'"}

# Only jobs that failed unexpectedly keep their payload. `known`: all identifiers that the contact ever had, phone
# numbers in all their forms.
_IS_KEPT = """
    workspace_id = %(workspace_id)s AND status = 'failed' AND payload IS NOT NULL AND (
        resource_id = %(id)s OR payload->>'contact_id' = %(id)s
        OR payload->>'conversation_id' IN (SELECT id FROM conversations WHERE contact_id = %(id)s)
        OR payload->>'external_id' = ANY(%(known)s::text[]) OR payload->>'phone' = ANY(%(known)s::text[])
        OR payload->>'to' = ANY(%(known)s::text[])
        OR lower(payload->>'email') IN (SELECT lower(each) FROM unnest(%(known)s::text[]) AS each))
"""
