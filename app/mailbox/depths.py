"""Depths: counts how much mail of a kind waits, part by part."""

from __future__ import annotations

from app.database import rows
from app.mailbox.mail import Mail

# The owner of a row, and its place in the mailbox.
Place = tuple[str, object]


def count_waiting(mail: Mail, limit: int, after: Place | None = None) -> tuple[dict[str, int], Place | None]:
    """Counts the mail that waits among about `limit` rows, in the order of the mail's index.

    Starts after the place `after`, or at the beginning if None. Returns the number by kind, and the place to continue
    after; None at the end. Mail waits if it is due, no worker has it, and its owner is not paused. Looks at all rows
    that share the last place: they are of one transaction, so there are few.
    """
    behind = f"AND (mail.{mail.owner}, mail.{mail.order}) > (%(owner)s, %(place)s)" if after else ""
    owner, place = after or ("", None)
    found = rows(
        f"""
        WITH looked_at AS MATERIALIZED (
            SELECT mail.{mail.owner} AS owner, mail.{mail.order} AS place,
                mail.due_at <= now() AND {mail.is_free} AS waits
            FROM {mail.table} mail WHERE mail.due_at IS NOT NULL {behind}
            ORDER BY mail.{mail.owner}, mail.{mail.order} FETCH FIRST %(limit)s ROWS WITH TIES),
        last AS (SELECT owner, place FROM looked_at ORDER BY owner DESC, place DESC LIMIT 1),
        boxes AS (
            SELECT owner AS {mail.owner}, count(*) AS number, count(*) FILTER (WHERE waits) AS waiting
            FROM looked_at GROUP BY owner)
        SELECT {mail.kind}, sum(number)::int, last.owner, last.place,
            coalesce(sum(waiting) FILTER (WHERE ({mail.paused_until} >= now()) IS NOT TRUE), 0)::int
        FROM boxes mail CROSS JOIN last {mail.owners} GROUP BY 1, 3, 4
        """,
        {"limit": limit, "owner": owner, "place": place},
    )
    waiting = dict.fromkeys(mail.kinds, 0) | {kind: waiting for kind, _, _, _, waiting in found}
    is_full = sum(looked_at for _, looked_at, *_ in found) >= limit
    return waiting, (found[0][2], found[0][3]) if is_full else None
