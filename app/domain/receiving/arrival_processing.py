"""Arrival processing: many senders in one transaction, each sender's arrivals in order.

An arrival's effects and its outcome are written together, so it takes effect once, even if its worker dies. Processing
needs only the contact's lock: neither a workspace's queued writes nor an import holds it up.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import structlog

from app import mailbox, metrics, sql
from app.channels.inbound import Arrival
from app.database import count, transaction
from app.domain.channels import arrivals
from app.domain.channels.arrivals import MAIL
from app.domain.receiving import arrival_effects
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Busy, Unit
from app.mailbox import Claimed
from app.models.arrivals import Arrival as Stored
from app.models.channels import Channel

log = structlog.get_logger(__name__)

# As for writes.BATCH, a transaction should have fewer than 64 savepoints.
BATCH = 50
# The pause before retrying arrivals whose rows another transaction has locked.
BUSY_SECONDS = 0.005
# An arrival is given up after this many errors, or after this many workers died while processing it alone.
MOST_ERRORS = 5
MOST_DEATHS = 3


class Unreadable(Exception):
    """The stored content is not an arrival that this version knows. Commands show the class's name."""


class Deadly(Exception):
    """Too many workers have died of the arrival."""


class _Opened(NamedTuple):
    """A claimed arrival, and the channel that it came over. `item`: None if it cannot be read."""

    stored: Stored
    channel: Channel
    item: Arrival | None


def work(*sender_keys: str) -> None:
    """Processes the senders' arrivals together, until none is left or the slice is over."""
    mailbox.serve_together(MAIL, sender_keys, BATCH, _work_on)


def _work_on(batch: Sequence[Claimed]) -> None:
    is_suspect = any(claimed.is_suspect for claimed in batch)
    if busy := _process_singly(batch) if is_suspect else _process(batch, {}):
        mailbox.release(MAIL, busy)
        time.sleep(BUSY_SECONDS)


def _process_singly(batch: Sequence[Claimed]) -> Sequence[Claimed]:
    """Like `_process`, but one arrival at a time, which shows which arrival kills its worker."""
    busy: list[Claimed] = []
    stuck: dict[str, str] = {}
    for number, claimed in enumerate(batch):
        # Renews no leases of earlier arrivals: one that has to be retried would be leased again.
        with mailbox.in_progress(MAIL, claimed, batch[number:]):
            busy += _process([claimed], stuck)
    return busy


def _process(batch: Sequence[Claimed], stuck: dict[str, str]) -> Sequence[Claimed]:
    """Processes the batch in one transaction. Returns the arrivals that have to be retried later.

    Such an arrival needs a row that another transaction has locked, or follows a `stuck` one. If a claim was lost,
    returns the whole batch. `stuck`: the failed or busy arrival of each sender, updated here.
    """
    with transaction():
        if not mailbox.holding(MAIL, batch):
            log.warning("arrivals.not_held", arrivals=len(batch))
            return batch
        taken = _take_up(batch)
        items = [(each.channel, each.item) for each in taken if each.item is not None]
        results = batches.run(
            [partial(_do, each, stuck) for each in taken],
            arrival_effects.needs(items),
            then=partial(arrival_effects.prefetch, items),
            in_order=False,
        )
        _record(taken, results)
    busy = {each.stored.id for each, result in zip(taken, results, strict=True) if isinstance(result, Busy)}
    return [claimed for claimed in batch if claimed.id in busy]


def _take_up(batch: Sequence[Claimed]) -> list[_Opened]:
    stored = Stored.batch([claimed.id for claimed in batch])
    found = Channel.select().where(Channel.id.in_(list({each.channel_id for each in stored})))
    channels = {channel.id: channel for channel in found}
    return [_Opened(each, channels[each.channel_id], _read(each)) for each in stored]


def _read(stored: Stored) -> Arrival | None:
    try:
        return arrivals.read(stored)
    except Exception:
        log.exception("arrival.unreadable", request_id=stored.trace_id, arrival=stored.id)
        return None


def _do(taken: _Opened, stuck: dict[str, str], unit: Unit) -> bool:
    """Applies the arrival; returns False if it has to wait for its message.

    Raises Busy if an earlier arrival of the sender is `stuck`.
    """
    stored, channel, item = taken
    # The stuck arrival itself is tried again: a unit may run all its tasks a second time.
    if stuck.get(stored.sender_key, stored.id) != stored.id:
        raise Busy
    if stored.deaths > MOST_DEATHS:
        raise Deadly
    cause = Cause(None, stored.trace_id)
    change = Change(stored.workspace_id, {}, None, "arrivals.apply", None, cause, unit)
    try:
        if item is None:
            raise Unreadable
        is_done = channel.deleted_at is not None or arrival_effects.apply(change, channel, item)
    except Exception as error:
        if isinstance(error, Busy) or stored.errors + 1 < MOST_ERRORS:
            stuck[stored.sender_key] = stored.id
        raise
    stuck.pop(stored.sender_key, None)
    return is_done


def _record(taken: Sequence[_Opened], results: Sequence[bool | Exception]) -> None:
    ended = [each for each in zip(taken, results, strict=True) if not isinstance(each[1], Busy)]
    problems = [_problem(each.stored, result) if isinstance(result, Exception) else None for each, result in ended]
    ends = [isinstance(result, Deadly) or each.stored.errors + 1 >= MOST_ERRORS for each, result in ended]
    values = {
        "ids": sql.array(each.stored.id for each, _ in ended),
        "waits": sql.array(result is False for _, result in ended),
        "problems": sql.array(problems),
        "ends": sql.array(ends),
        "kept_seconds": arrival_effects.RECEIPTS_KEPT.total_seconds(),
    }
    count(sql.prepared("record_arrivals"), values)
    for problem, is_end in zip(problems, ends, strict=True):
        metrics.ARRIVALS.labels("processed" if problem is None else "failed" if is_end else "retried").inc()


def _problem(stored: Stored, error: Exception) -> str:
    log.error("arrival.broke", request_id=stored.trace_id, arrival=stored.id, kind=stored.kind, exc_info=error)
    return f"{MOST_DEATHS} workers died of it." if isinstance(error, Deadly) else type(error).__name__
