"""Entries: finds contacts that are new in a segment, compared with the roll of the last look."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from app.database import count, delete_some, rows, transaction
from app.domain.segments.scans import Part

# The most contacts that one transaction removes from a roll.
PART = 5_000


class Entries(NamedTuple):
    """Contacts that entered a segment since the last look, ordered by id, and contacts that left it."""

    entered: Sequence[str]
    left: Collection[str]

    def up_to(self, last_id: str | None) -> Entries:
        """Returns the entries up to the contact `last_id`; all if it is None."""
        if last_id is None:
            return self
        entered, left = ([each for each in some if each <= last_id] for some in self)
        return Entries(entered, left)


def find(automation_id: str, segment_id: str, after: str, part: Part) -> Entries:
    """Returns how a part of an oldest-first scan differs from the roll.

    `after`: the last contact before the part.
    """
    known = {id for (id,) in rows(_ROLL, (automation_id, segment_id, after, part.last_id, part.last_id))}
    return Entries([each for each in part.ids if each not in known], known.difference(part.ids))


def keep(workspace_id: str, automation_id: str, segment_id: str, entries: Entries) -> None:
    """Adds the contacts that entered to the roll, and removes the contacts that left."""
    about = {"workspace_id": workspace_id, "automation_id": automation_id, "segment_id": segment_id}
    if entries.entered:
        count(_ADD, {**about, "ids": list(entries.entered)})
    if entries.left:
        count(_REMOVE, {**about, "ids": list(entries.left)})


def drop_left() -> int:
    """Removes up to PART contacts from each of up to ten rolls whose schedules are gone.

    Returns how many contacts were removed.
    """
    return sum(_drop_some(automation_id, segment_id) for automation_id, segment_id in rows(_LEFT))


def _drop_some(automation_id: str, segment_id: str) -> int:
    """Removes a part of the roll, unless the automation has been published with the schedule again."""
    with transaction():
        # A publication holds this lock. The next statement sees the changes of a finished publication.
        if not rows("SELECT 1 FROM automations WHERE id = %s FOR UPDATE SKIP LOCKED", (automation_id,)):
            return 0
        is_left = "automation_id = %s AND segment_id = %s AND NOT " + _HAS_SCHEDULE.format("segment_contacts")
        return delete_some("segment_contacts", is_left, "contact_id", (automation_id, segment_id), PART)


_ROLL = """
    SELECT contact_id FROM segment_contacts WHERE automation_id = %s AND segment_id = %s
        AND contact_id > %s AND (%s::text IS NULL OR contact_id <= %s)
"""
_ADD = """
    INSERT INTO segment_contacts (workspace_id, automation_id, segment_id, contact_id)
    SELECT %(workspace_id)s, %(automation_id)s, %(segment_id)s, unnest(%(ids)s::text[])
"""
_REMOVE = """
    DELETE FROM segment_contacts WHERE automation_id = %(automation_id)s AND segment_id = %(segment_id)s
        AND contact_id = ANY(%(ids)s::text[])
"""
_HAS_SCHEDULE = """EXISTS (SELECT FROM schedules
    WHERE schedules.automation_id = {0}.automation_id AND schedules.segment_id = {0}.segment_id)"""
# A skip scan: goes from one roll to the next, not through all contacts.
_LEFT = f"""
    WITH RECURSIVE roll(automation_id, segment_id) AS (
        (SELECT automation_id, segment_id FROM segment_contacts ORDER BY automation_id, segment_id LIMIT 1)
        UNION ALL
        SELECT next.* FROM roll CROSS JOIN LATERAL (
            SELECT automation_id, segment_id FROM segment_contacts
            WHERE (automation_id, segment_id) > (roll.automation_id, roll.segment_id)
            ORDER BY automation_id, segment_id LIMIT 1) AS next
    )
    SELECT automation_id, segment_id FROM roll WHERE NOT {_HAS_SCHEDULE.format("roll")} LIMIT 10
"""
