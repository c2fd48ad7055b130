"""Recent texts: how often a text was sent to a contact in the last minutes.

Callers of these functions have locked the contact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import timedelta

from app.database import rows
from app.domain.work.units import Unit
from app.lib import ids

# How long a sent text counts as recent.
RECENT = timedelta(minutes=5)
# The most identical texts that automations and broadcasts send to a contact within that time.
MOST_IDENTICAL = 20


def prefetch(unit: Unit, contact_ids: Iterable[str]) -> None:
    """Counts the texts recently sent to these contacts, in one statement."""
    since = unit.now - RECENT
    counted = rows(
        """
        SELECT contact_id, md5(text), count(*) FROM messages
        WHERE contact_id = ANY(%s) AND id > %s AND direction = 'out' AND created_at > %s AND text IS NOT NULL
            AND status <> 'scheduled'
        GROUP BY contact_id, md5(text)
        """,
        (sorted(contact_ids), ids.around("msg", since, -1), since),
    )
    unit.notes |= {("sent", contact_id): True for contact_id in contact_ids}
    unit.notes |= {("sent", contact_id, digest): count for contact_id, digest, count in counted}


def count(unit: Unit, contact_id: str, text: str) -> int:
    """Returns how often the text has been sent to the contact in the last five minutes."""
    if ("sent", contact_id) not in unit.notes:
        prefetch(unit, {contact_id})
    return unit.notes.get(_sent(contact_id, text), 0)  # type: ignore[no-any-return]


def add(unit: Unit, contact_id: str, text: str) -> None:
    """Records that the text is sent to the contact now."""
    unit.notes[_sent(contact_id, text)] = count(unit, contact_id, text) + 1


def _sent(contact_id: str, text: str) -> tuple[str, str, str]:
    return ("sent", contact_id, hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())
