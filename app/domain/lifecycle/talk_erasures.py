"""Erasures of a deleted contact's data in channels: identities, visitors, and files of messages.

Callers must have locked the contact.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.database import rows
from app.domain.channels import arrivals, media
from app.domain.conversations import message_statuses
from app.domain.work.units import Busy
from app.models.contacts import Contact
from app.models.identities import Identity, SuggestedMerge


def identifiers(contact: Contact) -> list[str]:
    """Returns the contact's identifiers at providers."""
    return [row.external_id for row in Identity.select().where(Identity.contact_id == contact.id)]


def begin(contact: Contact) -> None:
    """Ends the contact's unsent messages. Raises Busy.

    Also erases the contact's arrivals, visitors, identities and suggested merges.
    """
    _end_waiting(contact)
    _forget_arrivals(contact)
    _forget_visitors(contact)
    Identity.delete().where(Identity.contact_id == contact.id).execute()
    named = (SuggestedMerge.contact_id == contact.id) | (SuggestedMerge.other_id == contact.id)
    SuggestedMerge.delete().where(named).execute()


def erase_files(owner_ids: Sequence[str]) -> None:
    """Deletes the files of these messages or runs, also files still to be fetched. Safe to repeat.

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
