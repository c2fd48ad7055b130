"""The loops that empty mailboxes: claim, work, repeat.

The loops yield to other mailboxes after a slice of time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from app.database import DatabaseAway
from app.mailbox import marks
from app.mailbox.claims import LEASE_SECONDS, claim, claim_exclusive
from app.mailbox.findings import may_have_more
from app.mailbox.heads import first_rows
from app.mailbox.mail import Claimed, Mail, hear, ring, ring_again
from app.mailbox.outcomes import release

log = structlog.get_logger(__name__)

# How long a worker stays with one mailbox. If mail is left after that, the bell rings again and others get a turn.
SLICE_SECONDS = 0.1


def serve(mail: Mail, owner: str, room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    """Passes the rows of an exclusive mailbox to `work`, up to `room` at a time, until none are left.

    Stops after SLICE_SECONDS. `work` records the outcomes in a transaction that is `holding` the batch, and releases
    rows that have no outcome yet. If `work` raises, the batch is released here, and the scheduler rings for it. A batch
    that has outlasted its lease is not released: the next worker should treat it as suspect, because `work` may have
    computed until PostgreSQL ended its transaction.
    """
    began = time.monotonic()
    while batch := _take(mail, owner, room):
        _work_on(mail, batch, work)
        if time.monotonic() - began > SLICE_SECONDS:
            # Workers that found the mailbox taken left the bell's flag set, which would suppress the ring below.
            hear(mail, owner)
            heads = first_rows(mail, [owner])
            _ring_for_rest(mail, heads, time.monotonic() - began)
            return


def serve_shared(mail: Mail, owners: Sequence[str], room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    """Like `serve`, for several shared mailboxes at once. Each owner gets an equal share of a batch.

    One batch for many owners with little mail costs far less than a batch for each.
    """
    ends = time.monotonic() + SLICE_SECONDS
    while owners:
        hear(mail, *owners)
        rooms = dict.fromkeys(owners, max(1, room // len(owners)))
        if not (batch := claim(mail, rooms, LEASE_SECONDS)):
            return
        owners = may_have_more(rooms, batch)
        for owner in owners:  # so that another worker can help
            ring_again(mail, owner)
        _work_on(mail, batch, work)
        if time.monotonic() > ends:
            return


def serve_together(mail: Mail, owners: Sequence[str], room: int, work: Callable[[Sequence[Claimed]], object]) -> None:
    """Like `serve`, for several exclusive mailboxes at once.

    Each owner gets an equal share of a batch.
    """
    began = time.monotonic()
    while owners:
        hear(mail, *owners)
        locked, batch = claim_exclusive(mail, dict.fromkeys(owners, max(1, room // len(owners))), LEASE_SECONDS)
        if batch:
            _work_on(mail, batch, work)
        # Look again: a worker that we locked out has left, and the mail that it was rung for must not stay behind.
        heads = first_rows(mail, locked)
        owners = [owner for owner, waited in heads.items() if waited >= 0]
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
        # Leave the bell's flag set: the worker that has the mailbox looks again before it leaves.
        return []
    hear(mail, owner)
    while is_free or _is_head_free(mail, owner):
        starts = marks.of(mail).look([owner]).starts
        locked, batch = claim_exclusive(mail, {owner: room}, LEASE_SECONDS, starts)
        if batch or not locked:
            return batch
        # Look again: a worker that we locked out has left, and the mail that it was rung for must not stay behind.
        is_free = None
    return []


def _ring_for_rest(mail: Mail, heads: Mapping[str, float], seconds: float) -> None:
    """Rings for mailboxes with mail left. `seconds`: how long they were served.

    If the mail was due before that, rings as a repeat; otherwise as for new mail.
    """
    for owner, waited in heads.items():
        if waited > seconds:
            ring_again(mail, owner)
        elif waited >= 0:
            ring(mail, owner)


def _is_head_free(mail: Mail, owner: str) -> bool | None:
    """Whether the first row of a mailbox can be claimed; None if the mailbox is empty."""
    waited = first_rows(mail, [owner]).get(owner)
    return None if waited is None else waited >= 0


def _release_after_failure(mail: Mail, batch: Sequence[Claimed]) -> None:
    try:
        release(mail, batch)
    except DatabaseAway as error:  # the leases expire on their own
        log.warning("mailbox.not_released", table=mail.table, owner=batch[0].owner, error=str(error).strip())
