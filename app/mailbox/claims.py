"""Claims: a row is one worker's until its outcome is recorded, it is released, or its lease ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import structlog

from app import sql
from app.database import rows, transaction
from app.mailbox.mail import Claimed, Mail

log = structlog.get_logger(__name__)

# Lease of exclusive mail. A batch under way is also protected by its lock, so this only bounds how long the mail of a
# dead worker waits.
LEASE_SECONDS = 5


def claim(mail: Mail, rooms: Mapping[str, int], lease_seconds: float) -> list[Claimed]:
    """Claims up to that many due rows of each owner, in their order.

    Of an exclusive mailbox nothing is claimed while another worker has a lease on any of it, or is recording.
    """
    if not rooms:
        return []
    if mail.exclusive:
        return claim_exclusive(mail, rooms, lease_seconds)[1]
    return _claim(mail, _SHARED, rooms, lease_seconds)


def claim_exclusive(mail: Mail, rooms: Mapping[str, int], lease_seconds: float) -> tuple[list[str], list[Claimed]]:
    """The same for exclusive mail, and whose mailboxes were looked into: not those locked by another worker."""
    with transaction():
        # The locks come first and alone: the next statement then sees all that the workers before have committed.
        locked = _lock_mailboxes(mail, rooms)
        room_of = {owner: rooms[owner] for owner in locked}
        return locked, _claim(mail, _ORDERED, room_of, lease_seconds) if locked else []


def holding(mail: Mail, batch: Sequence[Claimed]) -> bool:
    """Inside a transaction that will record outcomes: locks these rows; False if any is no longer held.

    Nobody else claims anything of an exclusive mailbox until the transaction ends.
    """
    if mail.exclusive:
        turns = sorted({_turn(mail, claimed.owner) for claimed in batch})
        rows("SELECT pg_advisory_xact_lock(hashtextextended(turn, 0)) FROM unnest(%s::text[]) AS turn", (turns,))
    held = f"""
        SELECT mail.id FROM {mail.table} mail
        JOIN unnest(%s::text[], %s::int[]) AS held(id, claim) ON mail.id = held.id AND mail.claim = held.claim
        WHERE mail.due_at IS NOT NULL AND mail.id = ANY(%s)
        ORDER BY mail.id FOR NO KEY UPDATE OF mail
    """
    ids = [row.id for row in batch]
    return len(rows(held, (ids, [row.claim for row in batch], ids))) == len(batch)


def _lock_mailboxes(mail: Mail, owners: Iterable[str]) -> list[str]:
    """Locks the mailboxes that no other worker is claiming from or recording in; returns their owners."""
    # A lock of the transaction also excludes through a pooler that hands connections from client to client.
    turns = {_turn(mail, owner): owner for owner in owners}
    locked = rows(
        "SELECT turn, pg_try_advisory_xact_lock(hashtextextended(turn, 0)) FROM unnest(%s::text[]) AS turn",
        (list(turns),),
    )
    return [turns[turn] for turn, is_locked in locked if is_locked]


def _turn(mail: Mail, owner: str) -> str:
    return f"{mail.table}:{owner}"


def _claim(mail: Mail, chosen: str, rooms: Mapping[str, int], lease_seconds: float) -> list[Claimed]:
    # Materialized: the planner may else look for rows again for each that it joins, and would find the next ones.
    query = f"""
        WITH due AS MATERIALIZED (
            SELECT found.* FROM unnest(%(owners)s::text[], %(rooms)s::int[]) AS box(owner, room)
            CROSS JOIN LATERAL ({chosen.format(mail=mail)}) AS found)
        UPDATE {mail.table} mail
        SET leased_until = now() + %(lease_seconds)s * interval '1 second', claim = mail.claim + 1 {mail.on_claim}
        FROM due WHERE mail.id = due.id
        RETURNING due.place, extract(epoch FROM now() - due.free_at)::float, due.leased_until IS NOT NULL,
            mail.id, mail.{mail.owner}, mail.claim {"".join(f", mail.{name}" for name in mail.carries._fields)}
    """
    statement = sql.prepared(f"claim_{mail.queue.replace('-', '_')}", query)
    values = {"owners": sql.array(rooms), "rooms": sql.array(rooms.values()), "lease_seconds": lease_seconds}
    taken = sorted(rows(statement, values), key=lambda row: row[0])
    if ended := sum(is_suspect for _, _, is_suspect, *_ in taken):
        log.warning("mailbox.leases_ended", table=mail.table, rows=ended)
    return [
        Claimed(id, owner, number, mail.carries._make(carried), waited, is_suspect)
        for _, waited, is_suspect, id, owner, number, *carried in taken
    ]


# The planner expects a limit that is a column to let a tenth of the rows through. With a backlog it would read the
# whole table to join them; the constant limit corrects it. Rows beyond the room are not read and not locked.
_SHARED = """
    SELECT * FROM (
        SELECT mail.id, mail.leased_until, greatest(mail.due_at, mail.leased_until) AS free_at,
            mail.{mail.order} AS place
        FROM {mail.table} mail
        WHERE mail.{mail.owner} = box.owner AND mail.due_at <= now() AND {mail.is_free} AND {mail.guard}
        ORDER BY mail.{mail.order} LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS first
    LIMIT box.room
"""

# The first rows of the mailbox, up to one that is taken alone; none of them if the head is not due or any is leased,
# or none from one on that is leased (`is_overtaken`).
_ORDERED = """
    SELECT id, leased_until, free_at, place FROM (
        SELECT *, row_number() OVER up_to_it AS number, bool_or(is_alone) OVER up_to_it AS is_past,
            bool_and(due_at <= now()) OVER up_to_it AS is_due,
            bool_or(leased_until > now()) OVER {mail.blocked} AS is_leased
        FROM (
            SELECT mail.id, mail.leased_until, mail.due_at, greatest(mail.due_at, mail.leased_until) AS free_at,
                mail.{mail.order} AS place, {mail.alone} AS is_alone
            FROM {mail.table} mail
            WHERE mail.{mail.owner} = box.owner AND mail.due_at IS NOT NULL AND {mail.guard}
            ORDER BY mail.{mail.order} LIMIT box.room) AS first
        WINDOW up_to_it AS (ORDER BY place ROWS UNBOUNDED PRECEDING)) AS head
    WHERE is_due AND is_leased IS NOT TRUE AND (number = 1 OR NOT is_past)
"""
