"""Claims: give a worker rows until it records or releases them, or their lease ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import structlog

from app import sql
from app.database import rows, transaction
from app.mailbox import marks
from app.mailbox.heads import starts
from app.mailbox.mail import Claimed, Mail

log = structlog.get_logger(__name__)

# The lease of mail that `serving.py` claims. The transaction that works on an exclusive mailbox also locks it, so there
# the lease only bounds how long the mail of a dead worker waits.
LEASE_SECONDS = 5


def claim(mail: Mail, rooms: Mapping[str, int], lease_seconds: float) -> list[Claimed]:
    """Claims up to `rooms` due rows of each owner, in the order of the mail.

    In an exclusive mailbox, another worker's lease blocks all rows; with `is_overtaken`, only the rows from the leased
    one on. Nothing is claimed from such a mailbox while another worker claims or records.
    """
    if not rooms:
        return []
    if mail.exclusive:
        return claim_exclusive(mail, rooms, lease_seconds)[1]
    return _claim(mail, _SHARED, rooms, lease_seconds, starts(mail, rooms))


def claim_exclusive(
    mail: Mail, rooms: Mapping[str, int], lease_seconds: float, starts: Mapping[str, int] | None = None
) -> tuple[list[str], list[Claimed]]:
    """Like `claim`, for exclusive mail. Also returns the owners whose mailboxes it looked into.

    Leaves out the mailboxes that another worker has locked. `starts`: the mark to read each mailbox from, looked up
    after querying the heads of the mailboxes; if None, reads from the beginning.
    """
    with transaction():
        # Locks in a statement of its own, so that the next one sees everything that earlier workers have committed.
        locked = _lock_mailboxes(mail, rooms)
        room_of = {owner: rooms[owner] for owner in locked}
        return locked, _claim(mail, _ORDERED, room_of, lease_seconds, starts) if locked else []


def holding(mail: Mail, batch: Sequence[Claimed]) -> bool:
    """Locks the rows of the batch; returns whether all of them are still held under their claims.

    Call it in the transaction that records the outcomes. Until this ends, no other worker claims from an exclusive
    mailbox.
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
    """Locks the mailboxes that no other worker has locked, to claim or record; returns their owners."""
    # Locks of the transaction, not of the session, also work through a pooler that shares connections among clients.
    turns = {_turn(mail, owner): owner for owner in owners}
    locked = rows(
        "SELECT turn, pg_try_advisory_xact_lock(hashtextextended(turn, 0)) FROM unnest(%s::text[]) AS turn",
        (list(turns),),
    )
    return [turns[turn] for turn, is_locked in locked if is_locked]


def _turn(mail: Mail, owner: str) -> str:
    return f"{mail.table}:{owner}"


def _claim(
    mail: Mail,
    chosen: str,
    rooms: Mapping[str, int],
    lease_seconds: float,
    starts: Mapping[str, int] | None = None,
) -> list[Claimed]:
    # Materialized: otherwise the planner may search again for each row that it joins, and would find the next rows.
    query = f"""
        WITH due AS MATERIALIZED (
            SELECT {mail.drawn} AS drawn, found.*
            FROM unnest(%(owners)s::text[], %(rooms)s::int[], %(starts)s::bigint[]) AS box(owner, room, start)
            CROSS JOIN LATERAL ({chosen.format(mail=mail)}) AS found)
        UPDATE {mail.table} mail
        SET leased_until = now() + %(lease_seconds)s * interval '1 second', claim = mail.claim + 1 {mail.on_claim}
        FROM due WHERE mail.id = due.id
        RETURNING due.drawn, {mail.xids},
            due.place, extract(epoch FROM now() - due.free_at)::float, due.leased_until IS NOT NULL,
            mail.id, mail.{mail.owner}, mail.claim {"".join(f", mail.{name}" for name in mail.carries._fields)}
    """
    statement = sql.prepared(f"claim_{mail.queue.replace('-', '_')}", query)
    values = {"owners": sql.array(rooms), "rooms": sql.array(rooms.values()), "lease_seconds": lease_seconds}
    values["starts"] = sql.array((starts or {}).get(owner, marks.LOWEST) for owner in rooms)
    found = rows(statement, values)
    if found and found[0][0] is not None:
        marks.of(mail).settle(*found[0][:3])
    taken = sorted((row[3:] for row in found), key=lambda row: row[0])
    if ended := sum(is_suspect for _, _, is_suspect, *_ in taken):
        log.warning("mailbox.leases_ended", table=mail.table, rows=ended)
    return [
        Claimed(id, owner, number, mail.carries._make(carried), waited, is_suspect)
        for _, waited, is_suspect, id, owner, number, *carried in taken
    ]


# The planner assumes that a limit given by a column passes a tenth of the rows, so with a backlog it would read the
# whole table for the join. The constant inner limit corrects that. Rows beyond the room are neither read nor locked.
_SHARED = """
    SELECT * FROM (
        SELECT mail.id, mail.leased_until, greatest(mail.due_at, mail.leased_until) AS free_at,
            mail.{mail.order} AS place
        FROM {mail.table} mail
        WHERE mail.{mail.owner} = box.owner AND {mail.is_ahead} AND mail.due_at <= now() AND {mail.is_free}
            AND {mail.guard}
        ORDER BY mail.{mail.order} LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS first
    LIMIT box.room
"""

# The first rows of the mailbox, up to one that is not due yet. A row that is claimed alone is the whole batch, or ends
# the batch before it. A leased row excludes all rows, or with `is_overtaken` only itself and those behind it.
_ORDERED = """
    SELECT id, leased_until, free_at, place FROM (
        SELECT *, row_number() OVER up_to_it AS number, bool_or(is_alone) OVER up_to_it AS is_past,
            bool_and(due_at <= now()) OVER up_to_it AS is_due,
            bool_or(leased_until > now()) OVER {mail.blocked} AS is_leased
        FROM (
            SELECT mail.id, mail.leased_until, mail.due_at, greatest(mail.due_at, mail.leased_until) AS free_at,
                mail.{mail.order} AS place, {mail.alone} AS is_alone
            FROM {mail.table} mail
            WHERE mail.{mail.owner} = box.owner AND {mail.is_ahead} AND mail.due_at IS NOT NULL AND {mail.guard}
            ORDER BY mail.{mail.order} LIMIT box.room) AS first
        WINDOW up_to_it AS (ORDER BY place ROWS UNBOUNDED PRECEDING)) AS head
    WHERE is_due AND is_leased IS NOT TRUE AND (number = 1 OR NOT is_past)
"""
