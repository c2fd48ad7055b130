"""Mail: work that waits in a table, taken under a lease, its outcome recorded only by the worker that holds the claim.

A mailbox is all the mail with one owner: the writes of a workspace, the deliveries of an endpoint. `due_at` says when
a row may next be taken; a finished row has none. `claim` is the number that the row is taken under; it grows each
time, and an outcome counts only under the number of its own taking.

In order (`in_order`), one worker at a time has the mailbox: while any of its mail is leased none can be taken,
and `holding` keeps a late worker from recording. Taking a row moves `due_at` to the end of the lease.

Otherwise workers share it, each taking different rows. Taking a row sets `leased_until`, which no index has, so that
it costs no index entry; recording an outcome takes it away again.

Either way a row whose worker died can be taken again when the lease ends, by itself.

The bells (`app/bells.py`) only say where to look, and the scheduler looks where no bell was heard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app import bells, sql
from app.database import rows, transaction


@dataclass(frozen=True, slots=True)
class Mail:
    """A kind of mail: its table, the column that names the owner, the queue its bells ring on, and how it is taken."""

    table: str
    owner: str
    queue: str
    order: str
    in_order: bool = False
    on_claim: str = ""  # further columns that change when a row is taken
    carries: tuple[str, ...] = ()  # further columns that whoever takes a row (of shared mail) gets with it
    guard: str = "true"  # a condition on the row, read as `mail`, that holds while its owner may be served
    alone: str = "false"  # a condition on the row, of mail in order, that holds where it is taken without others


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row of mail in hand.

    `claim` is the number it was taken under, `carried` what the mail `carries`, `waited` (of shared mail) the seconds
    for which it had been due.
    """

    id: str
    owner: str
    claim: int
    carried: tuple[Any, ...] = ()
    waited: float = 0.0


def ring(mail: Mail, owner: str) -> None:
    """Tells some worker that the owner has mail. Never waits and never fails; call it after the commit."""
    # A mailbox in order keeps a worker's thread for as long as it has mail, so others are not to wait behind it.
    bells.ring(mail.queue, owner, shared=not mail.in_order)


def hear(mail: Mail, *owners: str) -> None:
    """A worker is about to look: a bell that rings from now on is a new one."""
    bells.hear(mail.queue, owners)


def take_head(mail: Mail, owner: str, room: int, lease_seconds: float) -> list[Claimed]:
    """Takes the head of a mailbox in order, up to so much of it; nothing where another worker has it."""
    if _is_head_due(mail, owner) is False:
        # The flag of the bell stays for that one, who looks again before it leaves: until then nobody else need come.
        return []
    hear(mail, owner)
    return claim(mail, {owner: room}, lease_seconds)


def give_way(mail: Mail, owner: str) -> None:
    """Leaves the rest of a mailbox in order to whoever comes next."""
    # Others left the flag up for this worker; up, it would keep the bell from ringing.
    hear(mail, owner)
    ring(mail, owner)


def claim(mail: Mail, rooms: Mapping[str, int], lease_seconds: float) -> list[Claimed]:
    """Takes up to so many due rows of each owner, in their order, until they are recorded or the lease ends."""
    if not rooms:
        return []
    if mail.in_order:
        return [
            claimed for owner, room in rooms.items() for claimed in _claim_in_order(mail, owner, room, lease_seconds)
        ]
    return _claim_shared(mail, rooms, lease_seconds)


def holding(mail: Mail, batch: Sequence[Claimed]) -> bool:
    """Inside a transaction that will record outcomes: keeps others off these rows; False if any is no longer held.

    For mail in order it also keeps others from claiming in that mailbox until the transaction ends.
    """
    if mail.in_order:
        _take_turn(batch[0].owner, wait=True)
    return _lock_held(mail, batch) == len(batch)


def overdue(mail: Mail, seconds: float, limit: int, after: str = "") -> tuple[list[str], str, float]:
    """Looks at up to `limit` mailboxes that are not empty, in the order of their owners after `after`.

    Returns the owners whose first mail, of what is not leased, has been due for longer than `seconds`, where the next
    look goes on ('': from the beginning), and for how many seconds the oldest of all these has been due. Steps through
    the index from owner to owner (a loose index scan), so its cost is that of the mailboxes, not of the mail in them.
    """
    first = f"""
        SELECT mail.{mail.owner} AS owner, mail.due_at FROM {mail.table} mail
        WHERE mail.due_at IS NOT NULL AND mail.{mail.owner} > %s AND {_is_free(mail)}
        ORDER BY mail.{mail.owner}, mail.{mail.order} LIMIT 1
    """
    heads = rows(
        f"""
        WITH RECURSIVE heads AS (
            ({first})
            UNION ALL
            SELECT next.* FROM heads CROSS JOIN LATERAL ({first.replace("%s", "heads.owner")}) AS next
        )
        SELECT owner, extract(epoch FROM now() - due_at)::float FROM heads LIMIT %s
        """,
        (after, limit + 1),
    )
    # One more than is looked at says whether there are more; else the next look might find itself at the end.
    looked_at = heads[:limit]
    overdue = [owner for owner, due_for in looked_at if due_for > seconds]
    oldest = max((due_for for _, due_for in looked_at), default=0.0)
    return overdue, looked_at[-1][0] if len(heads) > limit else "", max(oldest, 0.0)


def _lock_held(mail: Mail, batch: Sequence[Claimed]) -> int:
    """Locks those of the batch that are still held under the claim they were taken with, and says how many."""
    held = f"""
        SELECT mail.id FROM {mail.table} mail
        JOIN unnest(%s::text[], %s::int[]) AS held(id, claim) ON mail.id = held.id AND mail.claim = held.claim
        WHERE mail.due_at IS NOT NULL
        ORDER BY mail.id FOR NO KEY UPDATE OF mail
    """
    return len(rows(held, ([row.id for row in batch], [row.claim for row in batch])))


def _claim_in_order(mail: Mail, owner: str, room: int, lease_seconds: float) -> list[Claimed]:
    # Whoever has had the turn looks once more, without it, before leaving. So one who finds the turn taken may go:
    # what it was rung for will be seen.
    while _is_head_due(mail, owner):
        with transaction():
            # The lock comes first and alone: the next statement then sees all that the worker before has committed.
            if not _take_turn(owner, wait=False):
                return []
            taken = rows(_CLAIM_HEAD.format(mail=mail), (owner, room, lease_seconds))
        if taken:
            return [Claimed(id, owner, number) for id, number, _ in sorted(taken, key=lambda row: row[2])]
    return []


_CLAIM_HEAD = """
    WITH first AS (
        SELECT id, due_at, {mail.order} AS place, {mail.alone} AS alone FROM {mail.table}
        WHERE {mail.owner} = %s AND due_at IS NOT NULL ORDER BY {mail.order} LIMIT %s
    ), head AS (
        SELECT id, due_at FROM (
            SELECT *, row_number() OVER up_to_it AS number, bool_or(alone) OVER up_to_it AS is_past FROM first
            WINDOW up_to_it AS (ORDER BY place ROWS UNBOUNDED PRECEDING)
        ) AS numbered WHERE number = 1 OR NOT is_past
    )
    UPDATE {mail.table} mail
    SET due_at = now() + %s * interval '1 second', claim = mail.claim + 1 {mail.on_claim}
    FROM head WHERE mail.id = head.id AND NOT EXISTS (SELECT FROM head WHERE due_at > now())
    RETURNING mail.id, mail.claim, mail.{mail.order}
"""


def _is_head_due(mail: Mail, owner: str) -> bool | None:
    """Whether the first row of a mailbox in order can be taken; False where a worker has it, None without one."""
    head = rows(
        f"""
        SELECT due_at <= now() FROM {mail.table} WHERE {mail.owner} = %s AND due_at IS NOT NULL
        ORDER BY {mail.order} LIMIT 1
        """,
        (owner,),
    )
    return head[0][0] if head else None


def _claim_shared(mail: Mail, rooms: Mapping[str, int], lease_seconds: float) -> list[Claimed]:
    query = f"""
        UPDATE {mail.table} mail
        SET leased_until = now() + %(lease_seconds)s * interval '1 second', claim = mail.claim + 1 {mail.on_claim}
        FROM unnest(%(owners)s::text[], %(rooms)s::int[]) AS box(owner, room)
        CROSS JOIN LATERAL (
            SELECT mail.id, greatest(mail.due_at, mail.leased_until) AS free_at, mail.{mail.order} AS place
            FROM {mail.table} mail
            WHERE mail.{mail.owner} = box.owner AND mail.due_at <= now() AND {_is_free(mail)} AND {mail.guard}
            ORDER BY mail.{mail.order} LIMIT box.room FOR NO KEY UPDATE SKIP LOCKED
        ) AS due
        WHERE mail.id = due.id
        RETURNING due.place, extract(epoch FROM now() - due.free_at)::float, mail.id, mail.{mail.owner}, mail.claim
            {"".join(f", mail.{name}" for name in mail.carries)}
        """
    claim = sql.prepared(f"claim_{mail.queue.replace('-', '_')}", query)
    owners = sql.array(rooms)
    taken = rows(claim, {"lease_seconds": lease_seconds, "owners": owners, "rooms": sql.array(rooms.values())})
    taken.sort(key=lambda row: row[0])
    return [Claimed(id, owner, number, tuple(carried), waited) for _, waited, id, owner, number, *carried in taken]


def _is_free(mail: Mail) -> str:
    """The condition on a row, read as `mail`, that it has in shared mail while no worker has it."""
    return "true" if mail.in_order else "(mail.leased_until > now()) IS NOT TRUE"


def _take_turn(owner: str, *, wait: bool) -> bool:
    # Held to the end of the transaction, so it excludes also through a pooler that hands connections round.
    function = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
    return rows(f"SELECT {function}(hashtextextended(%s, 0))", (owner,))[0][0] is not False
