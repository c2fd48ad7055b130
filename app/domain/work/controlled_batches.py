"""Controlled batches: the pace of replays and broadcasts, and how people pause or abort them.

A batch goes through many rows in steps, each in its own transaction. With a canary, it handles a single row and then
waits until somebody continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from app import mailbox
from app.config import settings
from app.database import count, database, rows
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.errors import Conflict, NotFound
from app.mailbox import Mail
from app.models.controlled_batches import ControlledBatch

MOST_PER_SECOND = 1_000
# A paced batch may catch up this much, so that waking a little late costs nothing.
CATCH_UP_SECONDS = 0.5
# The states from which each state can be reached. Moving to the current state changes nothing.
_FROM = {
    "paused": ("canary", "running"),
    "running": ("canary", "paused"),
    "aborted": ("scheduled", "canary", "running", "paused"),
}
Batch = TypeVar("Batch", bound=ControlledBatch)


def lock(change: Change, model: type[Batch]) -> Batch:
    """Locks and returns the change's target. Waits for a step in progress. Raises NotFound."""
    locked = f"SELECT id FROM {model.NOUN}s WHERE id = %s AND workspace_id = %s FOR NO KEY UPDATE"
    if not rows(locked, (change.target, change.workspace_id)):
        raise NotFound()
    return model.get_by_id(change.target)


def move(
    change: Change, model: type[Batch], mail: Mail, state: str, enter: Callable[[Batch], object] | None = None
) -> Effect:
    """Moves the change's target to `state`, or calls `enter` to do that; rings after the commit.

    Does nothing if the target is in that state. Raises NotFound, and Conflict if the state cannot be reached.
    """
    batch = lock(change, model)
    if batch.state != state:
        if batch.state not in _FROM[state]:
            raise Conflict(f"This {model.NOUN} is {batch.state}.")
        (enter or partial(set_state, state=state))(batch)
        audit.record(change, model.NOUN, batch.id, {})
        database.after_commit(partial(mailbox.ring, mail, batch.id))
    return Effect("changed", model.NOUN, batch.id)


def refuse_ended(batch: ControlledBatch, wanted: str) -> None:
    """Raises Conflict if the batch has ended in a state other than `wanted`."""
    if batch.is_finished and batch.state != wanted:
        raise Conflict(f"This {batch.NOUN} is {batch.state}.")


def set_state(batch: ControlledBatch, state: str, **columns: Any) -> None:
    """Sets the state and `columns`. A batch that continues waits until its rate allows more rows.

    Deletes the remaining parts of an aborted batch.
    """
    also = "".join(f", {name} = %({name})s" for name in columns)
    count(_SET_STATE.format(noun=batch.NOUN, also=also), {**columns, "state": state, "id": batch.id})
    if state == "aborted":
        count(f"DELETE FROM {batch.NOUN}_parts WHERE {batch.NOUN}_id = %s", (batch.id,))


def allowed(batch: ControlledBatch, most: int) -> int:
    """Returns how many rows the batch may handle now, up to `most`; 1 for its canary."""
    if batch.state == "canary":
        return 1
    if batch.per_second is None:
        return most
    if batch.paced_until is None:
        return 1
    due = "SELECT floor(least(extract(epoch FROM now() - %s), %s) * %s)::int + 1"
    [(number,)] = rows(due, (batch.paced_until, CATCH_UP_SECONDS, batch.per_second))
    return min(max(int(number), 0), most)


def save(batch: ControlledBatch, paced: int, *, seconds: float = 0.0, **added: int) -> None:
    """Records a step. `added`: columns, and what is added to each.

    `paced`: how many rows count towards the rate. The batch continues in `seconds`, or later, when its rate allows more
    rows. After its canary, it waits until somebody continues it.
    """
    adding = "".join(f"{name} = {name} + %({name})s, " for name in added)
    waits = batch.state == "canary" and paced > 0
    values = {"id": batch.id, "paced": paced, "waits": waits, "seconds": seconds, "catch_up": CATCH_UP_SECONDS}
    count(_SAVE.format(noun=batch.NOUN, adding=adding), {**added, **values})


def forget_old(model: type[ControlledBatch], kept: Sequence[str], limit: int, *further: str) -> int:
    """Deletes up to `limit` rows of the oldest batch past the history retention; returns how many.

    Passes over batches in `kept` states. Once a batch has no rows left, also deletes it, after the statements
    `further`, which get its identifier.
    """
    noun = model.NOUN
    oldest = rows(_OLDEST.format(noun=noun), (settings().history_retention_days, list(kept)))
    if not oldest:
        return 0
    [(batch_id,)] = oldest
    forgotten = count(_FORGET_ROWS.format(noun=noun), (batch_id, batch_id, limit))
    if forgotten < limit:
        for statement in (f"DELETE FROM {noun}_parts WHERE {noun}_id = %s", *further):
            count(statement, (batch_id,))
        forgotten += count(f"DELETE FROM {noun}s WHERE id = %s", (batch_id,))
    return forgotten


_SET_STATE = """
    UPDATE {noun}s
    SET state = moved.state, leased_until = NULL,
        due_at = CASE WHEN moved.state IN ('canary', 'running') AND (paced_until > now()) IS NOT TRUE THEN now() END,
        wakes_at = CASE WHEN moved.state IN ('canary', 'running') AND paced_until > now() THEN paced_until END,
        finished_at = CASE WHEN moved.state IN ('done', 'aborted') THEN clock_timestamp() END{also}
    FROM (SELECT %(state)s AS state) AS moved WHERE id = %(id)s
"""
_SAVE = """
    WITH paced AS (
        SELECT CASE WHEN per_second IS NULL OR %(paced)s = 0 THEN paced_until
            ELSE greatest(coalesce(paced_until, now()), now() - %(catch_up)s * interval '1 second')
                + %(paced)s * interval '1 second' / per_second END AS until
        FROM {noun}s WHERE id = %(id)s
    ), next AS (
        SELECT until, greatest(until, now() + %(seconds)s * interval '1 second') AS at FROM paced
    )
    UPDATE {noun}s
    SET {adding}paced_until = next.until, leased_until = NULL,
        due_at = CASE WHEN NOT %(waits)s AND next.at <= now() THEN due_at END,
        wakes_at = CASE WHEN NOT %(waits)s AND next.at > now() THEN next.at END
    FROM next WHERE id = %(id)s
"""
_OLDEST = """
    SELECT id FROM {noun}s WHERE created_at < now() - %s * interval '1 day' AND state <> ALL(%s)
    ORDER BY created_at LIMIT 1
"""
_FORGET_ROWS = """
    DELETE FROM {noun}_rows WHERE {noun}_id = %s AND number IN (
        SELECT number FROM {noun}_rows WHERE {noun}_id = %s ORDER BY number LIMIT %s)
"""
