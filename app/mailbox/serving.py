"""The loops that empty mailboxes: claim, work, repeat, and yield to other mailboxes after a slice of time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import structlog

from app.database import DatabaseAway, rows
from app.mailbox.claims import LEASE_SECONDS, claim, claim_exclusive, release
from app.mailbox.mail import Claimed, Mail, hear, ring, ring_again

log = structlog.get_logger(__name__)

# After this time a mailbox that still has mail goes behind those that wait: its bell rings again.
SLICE_SECONDS = 0.1


def serve(mail: Mail, owner: str, room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    """Calls `work` with what an exclusive mailbox has, up to `room` rows at a time, until it is empty.

    Stops when the slice is over. `work` records the outcomes in a transaction that is `holding` the batch. What it
    leaves without an outcome must be released by it; if it raises, the batch is released here, and the scheduler rings
    for it. A batch that has outlasted its lease is not released, so that the next worker finds it suspect: it may have
    computed until PostgreSQL ended its transaction.
    """
    began = time.monotonic()
    while batch := _take(mail, owner, room):
        _work_on(mail, batch, work)
        if (seconds := time.monotonic() - began) > SLICE_SECONDS:
            # Others that found the mailbox in hand have left its bell's flag up, which would keep it from ringing.
            hear(mail, owner)
            _ring_for_rest(mail, _free_heads(mail, [owner]), seconds)
            return


def serve_shared(mail: Mail, owners: Sequence[str], room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    """The same for shared mailboxes, with the rows of all these owners in one batch, in which each has an equal part.

    What many owners have a little of costs far less together.
    """
    ends = time.monotonic() + SLICE_SECONDS
    while owners:
        hear(mail, *owners)
        part = max(1, room // len(owners))
        if not (batch := claim(mail, dict.fromkeys(owners, part), LEASE_SECONDS)):
            return
        numbers = Counter(claimed.owner for claimed in batch)
        owners = [owner for owner in owners if numbers[owner] == part]
        for owner in owners:  # there may be more, so another worker can help
            ring_again(mail, owner)
        _work_on(mail, batch, work)
        if time.monotonic() > ends:
            return


def serve_together(mail: Mail, owners: Sequence[str], room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    """Like `serve`, with what all these exclusive mailboxes have in one batch, in which each has an equal part."""
    began = time.monotonic()
    while owners:
        hear(mail, *owners)
        locked, batch = claim_exclusive(mail, dict.fromkeys(owners, max(1, room // len(owners))), LEASE_SECONDS)
        if batch:
            _work_on(mail, batch, work)
        # A worker that found a mailbox locked by this one has left; what it was rung for is not left behind.
        heads = _free_heads(mail, locked)
        owners = list(heads)
        if owners and (seconds := time.monotonic() - began) > SLICE_SECONDS:
            hear(mail, *owners)
            _ring_for_rest(mail, heads, seconds)
            return


def _work_on(mail: Mail, batch: Sequence[Claimed], work: Callable[[Sequence[Claimed]], object]) -> None:
    began = time.monotonic()
    try:
        work(batch)
    except BaseException:
        if time.monotonic() - began < LEASE_SECONDS:
            _release_after_failure(mail, batch)
        raise


def _take(mail: Mail, owner: str, room: int) -> list[Claimed]:
    is_free = _is_head_free(mail, owner)
    if is_free is False:
        # The flag of the bell stays up for the worker that has the mailbox, which looks again before it leaves.
        return []
    hear(mail, owner)
    while is_free or _is_head_free(mail, owner):
        locked, batch = claim_exclusive(mail, {owner: room}, LEASE_SECONDS)
        if batch or not locked:
            return batch
        # A worker that found the mailbox locked by this one has left; what it was rung for is not left behind.
        is_free = None
    return []


def _is_head_free(mail: Mail, owner: str) -> bool | None:
    """Whether the first row of a mailbox can be claimed; None if the mailbox is empty."""
    head = rows(
        f"""
        SELECT mail.due_at <= now() AND {mail.is_free} FROM {mail.table} mail
        WHERE mail.{mail.owner} = %s AND mail.due_at IS NOT NULL AND {mail.guard}
        ORDER BY mail.{mail.order} LIMIT 1
        """,
        (owner,),
    )
    return head[0][0] if head else None


def _ring_for_rest(mail: Mail, heads: Mapping[str, float], seconds: float) -> None:
    """Rings for mailboxes that were served for these seconds and have free mail again, or still."""
    for owner, waited in heads.items():
        if waited > seconds:
            ring_again(mail, owner)
        else:
            ring(mail, owner)


def _free_heads(mail: Mail, owners: Sequence[str]) -> dict[str, float]:
    """Of those mailboxes whose first row can be claimed, for how many seconds it has been due."""
    if not owners:
        return {}
    found = rows(
        f"""
        SELECT box.owner, extract(epoch FROM now() - head.due_at)::float
        FROM unnest(%s::text[]) AS box(owner) CROSS JOIN LATERAL (
            SELECT mail.due_at, mail.due_at <= now() AND {mail.is_free} AS is_free FROM {mail.table} mail
            WHERE mail.{mail.owner} = box.owner AND mail.due_at IS NOT NULL AND {mail.guard}
            ORDER BY mail.{mail.order} LIMIT 1) AS head
        WHERE head.is_free
        """,
        (list(owners),),
    )
    return dict(found)


def _release_after_failure(mail: Mail, batch: Sequence[Claimed]) -> None:
    try:
        release(mail, batch)
    except DatabaseAway as error:  # the leases end by themselves
        log.warning("mailbox.not_released", table=mail.table, owner=batch[0].owner, error=str(error).strip())
