"""Overdue: mailboxes with mail that has been due for longer than a bell takes."""

from __future__ import annotations

from app import sql
from app.database import rows
from app.mailbox.mail import Mail


def overdue(mail: Mail, seconds: float, limit: int, after: str = "") -> tuple[list[str], str, dict[str, float]]:
    """Looks at up to `limit` mailboxes that are not empty, in the order of their owners after `after`.

    Returns the owners whose first free mail has been due for longer than `seconds`, the owner after which the next
    look goes on ('': from the beginning), and by kind for how many seconds the oldest of these has been due, pauses of
    its owner not counted. Steps through the index from owner to owner (a loose index scan), so its cost is that of the
    mailboxes, not of the mail in them.
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
    # One more than is looked at says whether there are more; else the next look might find itself at the end.
    looked_at = heads[:limit]
    overdue = [owner for owner, due_for, *_ in looked_at if due_for > seconds]
    oldest = dict.fromkeys(mail.kinds, 0.0)
    for _, _, kind, unpaused_for in looked_at:
        oldest[kind] = max(oldest[kind], unpaused_for)
    return overdue, looked_at[-1][0] if len(heads) > limit else "", oldest
