"""Broadcasts: a message to each contact of a segment, or an automation started for each.

The contacts are chosen and stored when a broadcast starts (`broadcast_choices`), so contacts that match only later are
not added. `broadcast_batches` then handles the contacts in batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from peewee import fn

from app import mailbox
from app.config import settings
from app.database import count, database, rows
from app.domain.broadcasts import broadcast_choices, broadcast_representations
from app.domain.channels import media
from app.domain.deliveries import fan_out
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.domain.work.events import Cause, Recorder
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock, json
from app.mailbox import Mail, Waiting
from app.models.broadcasts import UNFINISHED, Broadcast

# Each broadcast has its own mailbox, so that none waits for another's limit, pause or canary.
MAIL = Mail(table="broadcasts", owner="id", queue="broadcasts", order="id", exclusive=True)
WAITING = Waiting(MAIL, "wakes_at")
MOST_PER_SECOND = 1_000
MOST_UNFINISHED = 100
MOST_DAYS = 90
NO_SEGMENT = Fault("/segment_id", "There is no such segment in this workspace.")
# The states from which each state can be reached. Moving to the current state changes nothing.
_FROM = {
    "paused": ("canary", "running"),
    "running": ("canary", "paused"),
    "aborted": ("scheduled", "canary", "running", "paused"),
}


def create(change: Change) -> Effect:
    """Schedules the broadcast, or begins it if it is due. Raises Invalid, Conflict, Busy."""
    _keep_room(change.workspace_id)
    columns = _columns(change, None)
    broadcast = Broadcast(
        id=change.target,
        workspace_id=change.workspace_id,
        state="scheduled",
        created_by=change.actor_id,
        trace_id=change.cause.trace_id,
        created_at=fn.now(),
        **columns,
    )
    broadcast.save(force_insert=True)
    _set_off(change)
    audit.record(change, "broadcast", change.target, _detail(change.payload))
    return Effect("made", "broadcast", change.target)


def update(change: Change) -> Effect:
    """Changes the given fields of a scheduled broadcast. Raises NotFound, Invalid, Conflict, Busy."""
    broadcast = _lock(change)
    refuse_begun(broadcast)
    if change.payload:
        Broadcast.update(**_columns(change, broadcast)).where(Broadcast.id == broadcast.id).execute()
        _set_off(change)
        audit.record(change, "broadcast", broadcast.id, _detail(change.payload))
    return Effect("changed", "broadcast", broadcast.id)


def pause(change: Change) -> Effect:
    """Stops reaching contacts until the broadcast is continued.

    Raises NotFound, and Conflict unless the broadcast is running, in its canary or already paused.
    """
    return _move(change, "paused")


def go_on(change: Change) -> Effect:
    """Continues after a pause, or with the rest after the canary. Raises NotFound, Conflict."""
    return _move(change, "running")


def abort(change: Change) -> Effect:
    """Ends the broadcast early: contacts not yet reached get nothing.

    Does nothing if it is aborted already. Raises NotFound, and Conflict if it is done.
    """
    return _move(change, "aborted")


def begin(broadcast: Broadcast) -> None:
    """Begins a scheduled broadcast, whose row the caller has locked. Stores the filter to use.

    Pauses the broadcast instead if its segment has been deleted. Otherwise rings its bell after the commit.
    """
    given = {"filter": broadcast.filter, "segment_id": broadcast.segment_id}
    condition = broadcast_choices.condition_of(broadcast.workspace_id, given)
    if condition is None:
        set_state(broadcast.id, "paused", "Its segment has been deleted.")
        return
    count(_BEGIN, (json.dumps(condition).decode(), broadcast.id))
    database.after_commit(partial(mailbox.ring, MAIL, broadcast.id))


def set_state(broadcast_id: str, state: str, problem: str | None = None) -> None:
    """Moves the broadcast to `state`. A resumed broadcast waits until its rate limit allows more."""
    count(_SET_STATE, {"state": state, "problem": problem, "id": broadcast_id})


def finish(broadcast_id: str, handled: int) -> None:
    """Ends a broadcast that has handled all contacts, and records its event.

    `handled`: the contacts of the last batch, which are added to the count.
    """
    count("UPDATE broadcasts SET handled = handled + %s, leased_until = NULL WHERE id = %s", (handled, broadcast_id))
    set_state(broadcast_id, "done")
    _tell(broadcast_id)


def refuse_begun(broadcast: Broadcast) -> None:
    """Raises Conflict unless the broadcast is scheduled."""
    if broadcast.state != "scheduled":
        raise Conflict(f"Only a scheduled broadcast can be changed; this one is {broadcast.state}.")


def refuse_move(broadcast: Broadcast, wanted: str) -> None:
    """Raises Conflict if the broadcast has ended, unless it is in the state `wanted`."""
    if broadcast.is_finished and broadcast.state != wanted:
        raise Conflict(f"This broadcast is {broadcast.state}.")


def check_time(send_at: datetime | None) -> None:
    """Raises Invalid if `send_at` is MOST_DAYS or more ahead, or more than a day in the past.

    A time within the past day means "now".
    """
    if send_at is not None and clock.now() - send_at > timedelta(days=1):
        raise Invalid(Fault("/send_at", "This time has passed. Leave it out to send at once."))
    if send_at is not None and (send_at - clock.now()).days >= MOST_DAYS:
        raise Invalid(Fault("/send_at", f"Give a time within {MOST_DAYS} days."))


def newest(workspace_id: str, state: str | None, last_id: str | None, limit: int) -> list[Broadcast]:
    """Returns up to `limit` broadcasts after `last_id`, newest first. `state`: None for any state."""
    query = Broadcast.in_workspace(workspace_id)
    if state is not None:
        query = query.where(Broadcast.state == state)
    if last_id is not None:
        query = query.where(Broadcast.id < last_id)
    return list(query.order_by(Broadcast.id.desc()).limit(limit))


def forget_old(limit: int = 10_000) -> int:
    """Deletes up to `limit` rows of the oldest ended broadcast past the history retention.

    Returns how many. A broadcast without rows left is deleted itself. Broadcasts that have not ended are kept.
    """
    oldest = rows(_OLDEST, (settings().history_retention_days, list(UNFINISHED)))
    if not oldest:
        return 0
    broadcast_id = oldest[0][0]
    forgotten = count(
        "DELETE FROM broadcast_rows WHERE broadcast_id = %s AND number IN ("
        "SELECT number FROM broadcast_rows WHERE broadcast_id = %s ORDER BY number LIMIT %s)",
        (broadcast_id, broadcast_id, limit),
    )
    if forgotten < limit:
        for table in ("broadcast_parts", "broadcast_deltas", "broadcast_counts"):
            count(f"DELETE FROM {table} WHERE broadcast_id = %s", (broadcast_id,))
        count("UPDATE uploads SET saved_reply_id = NULL WHERE saved_reply_id = %s", (broadcast_id,))
        forgotten += count("DELETE FROM broadcasts WHERE id = %s", (broadcast_id,))
    return forgotten


def _keep_room(workspace_id: str) -> None:
    unfinished = Broadcast.in_workspace(workspace_id).where(Broadcast.state.in_(UNFINISHED))
    if unfinished.count() >= MOST_UNFINISHED:
        raise Conflict(f"A workspace has at most {MOST_UNFINISHED} broadcasts that have not ended. Abort one first.")


def _columns(change: Change, broadcast: Broadcast | None) -> dict[str, Any]:
    """Returns the columns that the payload sets.

    If the message changes, also attaches its files to the broadcast, and detaches files that it no longer uses. Raises
    Invalid, Busy.
    """
    columns = dict(change.payload)
    if "send_at" in columns:
        columns["send_at"] = columns["send_at"] and datetime.fromisoformat(columns["send_at"])
    if columns.get("segment_id") is not None:
        if broadcast_choices.condition_of(change.workspace_id, {"segment_id": columns["segment_id"]}) is None:
            raise Invalid(NO_SEGMENT)
        columns["filter"] = None
    elif "filter" in columns:
        columns["segment_id"] = None
    if "message" in columns:
        columns |= {"message": _kept(change, broadcast), "automation_id": None}
    elif "automation_id" in columns:
        columns["message"] = None
    if broadcast is not None and {"message", "automation_id"} & columns.keys():
        had = {each["id"] for each in (broadcast.message or {}).get("attachments", ())}
        has = {each["id"] for each in (columns["message"] or {}).get("attachments", ())}
        media.detach(change.unit, change.workspace_id, had - has)
    return columns


def _kept(change: Change, broadcast: Broadcast | None) -> dict[str, Any]:
    """Returns the message of the payload. Its files belong to the broadcast from now on."""
    message = dict(change.payload["message"])
    named = [each["upload_id"] for each in message.get("attachments", ())]
    kept = media.give(change.unit, change.workspace_id, named, change.target)
    return message | ({"attachments": kept} if named else {})


def _detail(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the given fields as the audit log shows them: without the message and the filter."""
    return {name: value for name, value in payload.items() if name not in ("message", "filter")}


def _set_off(change: Change) -> None:
    """Begins a scheduled broadcast if its time has come; otherwise sets when it wakes."""
    broadcast = Broadcast.get_by_id(change.target)
    [(own_zone, at)] = rows("SELECT timezone, now() FROM workspaces WHERE id = %s", (change.workspace_id,))
    starts_at = broadcast_choices.starts_at(broadcast.send_at, broadcast.time_zone, own_zone)
    if starts_at is None or starts_at <= at:
        begin(broadcast)
    else:
        count("UPDATE broadcasts SET wakes_at = %s, due_at = NULL WHERE id = %s", (starts_at, broadcast.id))


def _lock(change: Change) -> Broadcast:
    """Returns the broadcast, locked: waits until a batch in progress has committed. Raises NotFound."""
    locked = "SELECT id FROM broadcasts WHERE id = %s AND workspace_id = %s FOR NO KEY UPDATE"
    if not rows(locked, (change.target, change.workspace_id)):
        raise NotFound()
    return Broadcast.get_by_id(change.target)


def _move(change: Change, state: str) -> Effect:
    broadcast = _lock(change)
    if broadcast.state != state:
        if broadcast.state not in _FROM[state]:
            raise Conflict(f"This broadcast is {broadcast.state}.")
        if broadcast.started_at is None and state == "running":
            begin(broadcast)
        elif (
            broadcast.canary
            and (broadcast.state, state) == ("paused", "running")
            and not rows(_REACHED, (broadcast.id,))
        ):
            set_state(broadcast.id, "canary")  # the canary has not reached a contact yet
        else:
            set_state(broadcast.id, state)
        if state == "aborted":
            count("DELETE FROM broadcast_parts WHERE broadcast_id = %s", (broadcast.id,))
            _tell(broadcast.id, change.events)
        audit.record(change, "broadcast", broadcast.id, {})
        database.after_commit(partial(mailbox.ring, MAIL, broadcast.id))
    return Effect("changed", "broadcast", broadcast.id)


def _tell(broadcast_id: str, recorder: Recorder | None = None) -> None:
    """Records the event `broadcast.finished`. Without a `recorder`, also writes it."""
    broadcast = Broadcast.get_by_id(broadcast_id)
    data = {"broadcast": broadcast_representations.represent(broadcast)}
    if recorder is not None:
        recorder.record("broadcast.finished", data)
        return
    recorder = Recorder(broadcast.workspace_id)
    recorder.cause = Cause(None, broadcast.trace_id)
    recorder.record("broadcast.finished", data)
    fan_out.write(recorder)


_BEGIN = """
    UPDATE broadcasts
    SET filter = %s, state = CASE WHEN canary THEN 'canary' ELSE 'running' END, started_at = now(), problem = NULL,
        due_at = now(), leased_until = NULL, wakes_at = NULL
    WHERE id = %s
"""
_REACHED = "SELECT 1 FROM broadcast_rows WHERE broadcast_id = %s AND outcome <> 'skipped' LIMIT 1"
_SET_STATE = """
    UPDATE broadcasts
    SET state = moved.state, leased_until = NULL, problem = %(problem)s,
        due_at = CASE WHEN moved.state IN ('canary', 'running') AND (paced_until > now()) IS NOT TRUE THEN now() END,
        wakes_at = CASE WHEN moved.state IN ('canary', 'running') AND paced_until > now() THEN paced_until END,
        finished_at = CASE WHEN moved.state IN ('done', 'aborted') THEN clock_timestamp() END
    FROM (SELECT %(state)s AS state) AS moved WHERE id = %(id)s
"""
_OLDEST = """
    SELECT id FROM broadcasts WHERE created_at < now() - %s * interval '1 day' AND state <> ALL(%s)
    ORDER BY created_at LIMIT 1
"""
