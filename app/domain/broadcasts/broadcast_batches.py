"""Batches of broadcasts: each handles the next contacts and records an outcome for each.

A batch is one transaction of bounded size: the messages or runs, a row for each contact, and the position in the part.
So each contact is handled once, even if a worker dies. The outbox then sends each message once.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog

from app import bounds, mailbox
from app.database import count, rows, transaction
from app.domain.broadcasts import broadcast_choices, broadcast_counts, broadcasts, contact_actions
from app.domain.broadcasts.broadcasts import MAIL
from app.domain.broadcasts.contact_actions import Action, Reached, Skipped, TooEarly
from app.domain.triggers import batches
from app.domain.work import controlled_batches
from app.domain.work.fairness import HEAVY, TURNS, Room
from app.domain.work.units import Busy, Unit
from app.lib import switching
from app.mailbox import Claimed
from app.models.broadcasts import Broadcast

log = structlog.get_logger(__name__)

# The most contacts in a batch. Even if a rate limit allows fewer, LEAST_LOOKED_AT are examined: skipped contacts do not
# count against the limit.
BATCH, LEAST_LOOKED_AT = 250, 50
# The pause if another transaction has locked the next contact.
PAUSE_SECONDS = 0.01
# When to check again whether the outboxes have room: soon while they empty, later if nothing leaves them.
SOON_SECONDS, LATER_SECONDS = 0.25, 1.0


@dataclass(frozen=True, slots=True)
class _Part:
    """The next contacts of a part that is due."""

    number: int
    due_at: datetime
    contact_ids: Sequence[str]
    is_last: bool


@dataclass(slots=True)
class _Done:
    """The results of a batch: the rows, in order, and the contacts to handle later, by time.

    `reached`: how many contacts were reached. `seen`: how many are in `rows` or `later`.
    """

    rows: list[tuple[str, str, str | None, str | None, str | None]] = field(default_factory=list)
    later: dict[datetime, list[str]] = field(default_factory=lambda: defaultdict(list))
    reached: int = 0
    seen: int = 0


# Caps the threads of this process that serve one workspace's broadcasts.
_ROOM = Room(bounds.BROADCASTS_PER_WORKSPACE, most_rung=1)


def work(broadcast_id: str) -> None:
    """Continues the broadcast until it ends, has to wait, or the slice is over.

    Does nothing if its workspace has no thread free; the bell rings again when one is.
    """
    for (workspace_id,) in rows("SELECT workspace_id FROM broadcasts WHERE id = %s", (broadcast_id,)):
        with _ROOM.thread(workspace_id, MAIL, broadcast_id) as has_thread:
            if has_thread and not TURNS.is_heavy(workspace_id):
                mailbox.serve(MAIL, broadcast_id, 1, partial(_go_on, is_light=True))
            elif has_thread:
                with HEAVY.thread(None, MAIL, broadcast_id) as has_thread_of_heavy, switching.sharing():
                    if has_thread_of_heavy:
                        mailbox.serve(MAIL, broadcast_id, 1, _go_on)


def _go_on(claimed: Sequence[Claimed], *, is_light: bool = False) -> None:
    """Takes one step in one transaction: the start, a slice of the choice, or a batch of contacts.

    `is_light`: the workspace was not heavy when its thread was taken. The batch ends if the workspace becomes heavy.
    """
    is_held_up = False
    with transaction():
        if not mailbox.holding(MAIL, claimed):
            log.warning("broadcast.not_held", broadcast=claimed[0].id)
            return
        broadcast = Broadcast.get_by_id(claimed[0].id)
        if broadcast.state == "scheduled":
            broadcasts.begin(broadcast)
        elif broadcast.reached is not None:
            added, reached = broadcast_choices.write_down(broadcast)
            count(_CHOSEN, (added, reached, broadcast.id))
        else:
            is_held_up = _handle_next(broadcast, is_light)
    if is_held_up:
        time.sleep(PAUSE_SECONDS)


def _handle_next(broadcast: Broadcast, is_light: bool) -> bool:
    """Handles the next contacts. Returns True if another transaction has locked the first of them."""
    found = rows(_NEXT_PART, {"id": broadcast.id, "look_at": BATCH})
    if not found:
        _save(broadcast, _Done())
        return False
    part = _Part(*found[0])
    action = contact_actions.of(broadcast)
    if (problem := action.problem()) is not None:
        controlled_batches.set_state(broadcast, "paused", problem=problem)
        return False
    free, allowed = action.room(), controlled_batches.allowed(broadcast, BATCH)
    done = _do(broadcast, action, part, min(allowed, free), is_light)
    _move_on(broadcast, part, done)
    _save(broadcast, done, is_full=free < allowed)
    return free > 0 and not done.seen


def _do(broadcast: Broadcast, action: Action, part: _Part, room: int, is_light: bool) -> _Done:
    """Handles the part's first contacts, until one is locked elsewhere or the workspace gets heavy."""
    looked_at = part.contact_ids[: max(room, LEAST_LOOKED_AT) if room else 0]
    if not looked_at:
        return _Done()
    reached = set[str]()

    def reach(contact_id: str, unit: Unit) -> Reached:
        # A batch that fails is redone contact by contact, so `reached` may have the contact already.
        if len(reached - {contact_id}) >= room or (reached and is_light and TURNS.is_heavy(broadcast.workspace_id)):
            raise Busy
        with TURNS.of(broadcast.workspace_id):
            result = action.reach(contact_id, unit)
        reached.add(contact_id)
        return result

    tasks: list[Callable[[Unit], Reached]] = [partial(reach, each) for each in looked_at]
    results = batches.run(tasks, action.needs(looked_at), then=partial(action.prefetch, looked_at))
    done = _Done(seen=len(results))
    for contact_id, result in zip(looked_at, results, strict=False):
        if isinstance(result, TooEarly):
            done.later[result.until].append(contact_id)
        elif isinstance(result, Reached):
            done.reached += 1
            done.rows.append((contact_id, result.outcome, None, result.message_id, result.run_id))
        else:
            done.rows.append((contact_id, "skipped", _reason(broadcast, contact_id, result), None, None))
    return done


def _reason(broadcast: Broadcast, contact_id: str, error: Exception) -> str:
    if isinstance(error, Skipped):
        return error.reason
    # A fault of ours: trying again would meet the same fault.
    log.error("broadcast.failed", broadcast=broadcast.id, contact=contact_id, exc_info=error)
    return "error"


def _move_on(broadcast: Broadcast, part: _Part, done: _Done) -> None:
    """Records the outcomes, and advances the position in the part, which is deleted at its end."""
    if done.rows:
        contact_ids, outcomes, reasons, message_ids, run_ids = map(list, zip(*done.rows, strict=True))
        place = (broadcast.workspace_id, broadcast.id, broadcast.handled)
        count(_ADD_ROWS, (*place, contact_ids, outcomes, reasons, message_ids, run_ids))
    skipped = Counter(f"{broadcast_counts.SKIPPED}{reason}" for _, _, reason, _, _ in done.rows if reason is not None)
    started = Counter(outcome for _, outcome, *_ in done.rows if outcome == broadcast_counts.STARTED)
    broadcast_counts.add(broadcast, skipped + started)
    for until, contact_ids in done.later.items():
        broadcast_choices.add(broadcast, until, contact_ids)
    if part.is_last and done.seen == len(part.contact_ids):
        count("DELETE FROM broadcast_parts WHERE broadcast_id = %s AND number = %s", (broadcast.id, part.number))
    else:
        count(_MOVE, (done.seen, broadcast.id, part.number))


def _save(broadcast: Broadcast, done: _Done, *, is_full: bool = False) -> None:
    """Ends the broadcast, or stores when it continues: at once, at a time, or only at a request."""
    [(next_in,)] = rows(_NEXT_IN, (broadcast.id,))
    waits = broadcast.state == "canary" and done.reached > 0
    if next_in is None and not waits and not (broadcast.message and contact_actions.under_way(broadcast.id)):
        controlled_batches.save(broadcast, done.reached, handled=len(done.rows))
        broadcasts.finish(broadcast)
        return
    if next_in is None:
        seconds = LATER_SECONDS  # until the last messages have been sent
    elif next_in <= 0 and is_full:
        seconds = SOON_SECONDS if done.reached else LATER_SECONDS
    else:
        seconds = max(float(next_in), 0)
    controlled_batches.save(broadcast, done.reached, seconds=seconds, handled=len(done.rows))


_CHOSEN = "UPDATE broadcasts SET count = count + %s, reached = %s, leased_until = NULL WHERE id = %s"
_NEXT_PART = """
    SELECT number, due_at, contact_ids[place + 1:place + %(look_at)s],
        place + %(look_at)s >= cardinality(contact_ids)
    FROM broadcast_parts WHERE broadcast_id = %(id)s AND due_at <= now() ORDER BY due_at, number LIMIT 1
"""
_MOVE = "UPDATE broadcast_parts SET place = place + %s WHERE broadcast_id = %s AND number = %s"
_NEXT_IN = "SELECT extract(epoch FROM min(due_at) - now()) FROM broadcast_parts WHERE broadcast_id = %s"
_ADD_ROWS = """
    INSERT INTO broadcast_rows (workspace_id, broadcast_id, number, contact_id, outcome, reason, message_id, run_id)
    SELECT %s, %s, %s + place, contact_id, outcome, reason, message_id, run_id
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) WITH ORDINALITY
        AS made(contact_id, outcome, reason, message_id, run_id, place)
"""
