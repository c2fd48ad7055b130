"""Overdue: finds mailboxes with mail that has been due for longer than a bell takes."""

from __future__ import annotations

from app import sql
from app.database import rows
from app.mailbox.mail import Mail


def overdue(mail: Mail, seconds: float, limit: int, after: str = "") -> tuple[list[str], str, dict[str, float]]:
    """Looks at the first free row of up to `limit` mailboxes, by owner, after the owner `after`.

    Returns the owners whose row has been due for more than `seconds`; the owner to continue after, "" at the end; and
    for each kind, how many seconds the oldest row has been due since its owner's pause or rate last ended. Steps from
    owner to owner in the index (a loose index scan), so the cost grows with the mailboxes, not with the mail in them.
    """
    first = f"""
        SELECT mail.{mail.owner}, mail.due_at FROM {mail.table} mail
        WHERE mail.due_at IS NOT NULL AND mail.{mail.owner} > %(after)s AND {mail.is_free}
        ORDER BY mail.{mail.owner}, mail.{mail.order} LIMIT 1
    """
    query = f"""
        WITH RECURSIVE heads AS (
            ({first})
            UNION ALL
            SELECT next.* FROM heads
            CROSS JOIN LATERAL ({first.replace("%(after)s", f"heads.{mail.owner}")}) AS next
        )
        SELECT mail.{mail.owner}, extract(epoch FROM now() - mail.due_at)::float, {mail.kind},
            extract(epoch FROM now() - greatest(mail.due_at, {mail.paused_until}, {mail.paced_until}))::float
        FROM heads mail {mail.owners} LIMIT %(limit)s
    """
    statement = sql.prepared(f"overdue_{mail.queue.replace('-', '_')}", query)
    heads = rows(statement, {"after": after, "limit": limit + 1})
    # Fetches one mailbox more, to know whether there is more. Otherwise, the next call might find none.
    looked_at = heads[:limit]
    overdue = [owner for owner, due_for, *_ in looked_at if due_for > seconds]
    oldest = dict.fromkeys(mail.kinds, 0.0)
    for _, _, kind, unpaused_for in looked_at:
        oldest[kind] = max(oldest[kind], unpaused_for)
    return overdue, looked_at[-1][0] if len(heads) > limit else "", oldest
