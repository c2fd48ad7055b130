"""Heads: looks at the first row of each mailbox, and moves the mailbox's mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.database import rows
from app.mailbox import marks
from app.mailbox.mail import Mail


def first_rows(mail: Mail, owners: Sequence[str]) -> dict[str, float]:
    """How many seconds the first row of each non-empty mailbox has been due; -1 if not claimable.

    Leaves out mailboxes that the guard closes.
    """
    if not owners:
        return {}
    # If the planner believes that the table has no mail, it would read all mail by some other index, and sort it. Empty
    # mailboxes get a row, too, because each row has the time and the xids.
    #
    # The snapshot is younger than now(), so a row that it has could be due after now(). It would seem to be another
    # worker's, which looks again, and would wait for the scheduler.
    query = f"""
        SET LOCAL enable_sort = off;
        SELECT {mail.now_and_xids}, box.owner, head.place, head.waited, head.is_open
        FROM unnest(%s::text[], %s::bigint[]) AS box(owner, start)
        CROSS JOIN LATERAL {mail.spans}
        LEFT JOIN LATERAL (
            SELECT {mail.place} AS place, {mail.guard} AS is_open,
                CASE WHEN mail.due_at <= clock_timestamp() AND {mail.is_free}
                THEN extract(epoch FROM clock_timestamp() - mail.due_at)::float ELSE -1 END AS waited
            FROM {mail.table} mail
            WHERE mail.{mail.owner} = box.owner AND {mail.is_in_span} AND mail.due_at IS NOT NULL
            ORDER BY mail.{mail.order} LIMIT 1) AS head ON true
        ORDER BY head.place DESC NULLS FIRST -- of an owner's two rows, the lower one counts
    """
    kept = marks.of(mail)
    look = kept.look(owners)
    found = rows(query, (list(look.starts), list(look.starts.values())))
    if mail.is_by_time:
        now, xid, ended = found[0][:3]
        look = look._replace(settled=max(look.settled, kept.settle(now - marks.MARGIN, xid, ended)))
    heads = [row[3:] for row in found if row[4] is not None]
    if mail.has_marks:
        kept.note(look, {owner: place for owner, place, _, _ in heads})
    return {owner: waited for owner, _, waited, is_open in heads if is_open}


def starts(mail: Mail, owners: Iterable[str]) -> Mapping[str, int]:
    """Returns the mark of each mailbox, to claim by time from there; now and then, moves marks first.

    Call it before each claim.
    """
    kept = marks.of(mail)
    if behind := kept.behind(owners):
        first_rows(mail, behind)
    return kept.starts(owners)
