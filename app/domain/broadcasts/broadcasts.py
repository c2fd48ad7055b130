"""Broadcasts: a message to each contact of a segment, or an automation started for each.

The contacts are chosen and stored when a broadcast starts (`broadcast_choices`), so contacts that match only later are
not added. `broadcast_batches` then handles the contacts in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from marshmallow import fields, validate
from peewee import fn

from app import mailbox
from app.database import count, database, rows
from app.domain.broadcasts import broadcast_choices, broadcast_counts
from app.domain.channels import channels, media
from app.domain.channels.buttons import ButtonSchema
from app.domain.channels.media import AttachmentSchema
from app.domain.contacts import contacts
from app.domain.contacts.contacts import ContactSchema
from app.domain.conversations import sending_checks
from app.domain.deliveries import fan_out
from app.domain.segments import segments
from app.domain.work import audit, controlled_batches
from app.domain.work.changes import Change, Effect
from app.domain.work.events import Cause, Recorder
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock, json
from app.lib.schemas import ResponseBody, about, time
from app.mailbox import Mail, Waiting
from app.models.automations import Automation
from app.models.broadcasts import OUTCOMES, REASONS, STATES, TIME_ZONES, UNFINISHED, Broadcast
from app.models.channels import Channel
from app.models.jobs import Job
from app.models.segments import Segment

# Each broadcast has its own mailbox, so that none waits for another's limit, pause or canary.
MAIL = Mail(table="broadcasts", owner="id", queue="broadcasts", order="id", exclusive=True)
WAITING = Waiting(MAIL, "wakes_at")
MOST_UNFINISHED = 100
MOST_DAYS = 90
_NAMED = {"segment": Segment, "channel": Channel, "automation": Automation}


def create(change: Change) -> Effect:
    """Schedules the broadcast, or begins it if it is due. Raises Invalid, Conflict, Busy."""
    unfinished = Broadcast.in_workspace(change.workspace_id).where(Broadcast.state.in_(UNFINISHED))
    if unfinished.count() >= MOST_UNFINISHED:
        raise Conflict(f"A workspace has at most {MOST_UNFINISHED} broadcasts that have not ended. Abort one first.")
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
    broadcast = controlled_batches.lock(change, Broadcast)
    refuse_begun(broadcast)
    if change.payload:
        Broadcast.update(**_columns(change, broadcast)).where(Broadcast.id == broadcast.id).execute()
        _set_off(change)
        audit.record(change, "broadcast", broadcast.id, _detail(change.payload))
    return Effect("changed", "broadcast", broadcast.id)


def pause(change: Change) -> Effect:
    """Pauses the broadcast. Raises NotFound, and Conflict if it is scheduled or has ended."""
    return controlled_batches.move(change, Broadcast, MAIL, "paused")


def go_on(change: Change) -> Effect:
    """Continues after a pause, or with the rest after the canary. Raises NotFound, Conflict."""
    return controlled_batches.move(change, Broadcast, MAIL, "running", _resume)


def abort(change: Change) -> Effect:
    """Aborts the broadcast: contacts not yet reached get nothing. Raises NotFound; Conflict if done."""
    return controlled_batches.move(change, Broadcast, MAIL, "aborted", partial(_abort, change.events))


def begin(broadcast: Broadcast) -> None:
    """Begins a scheduled broadcast, whose row the caller has locked. Stores the filter to use.

    Pauses the broadcast instead if its segment has been deleted. Otherwise rings its bell after the commit.
    """
    given = {"filter": broadcast.filter, "segment_id": broadcast.segment_id}
    condition = broadcast_choices.condition_of(broadcast.workspace_id, given)
    if condition is None:
        controlled_batches.set_state(broadcast, "paused", problem="Its segment has been deleted.")
        return
    count(_BEGIN, (json.dumps(condition).decode(), broadcast.id))
    database.after_commit(partial(mailbox.ring, MAIL, broadcast.id))


def finish(broadcast: Broadcast) -> None:
    """Ends a broadcast that has handled all contacts, and records its event."""
    controlled_batches.set_state(broadcast, "done", problem=None)
    recorder = Recorder(broadcast.workspace_id)
    recorder.cause = Cause(None, broadcast.trace_id)
    _tell(recorder, broadcast)
    fan_out.write(recorder)


def refuse_begun(broadcast: Broadcast) -> None:
    """Raises Conflict unless the broadcast is scheduled."""
    if broadcast.state != "scheduled":
        raise Conflict(f"Only a scheduled broadcast can be changed; this one is {broadcast.state}.")


def check(workspace_id: str, payload: Mapping[str, Any]) -> None:
    """Raises Invalid for a bad time, a missing resource, or a message or files that cannot be sent."""
    _check_time(payload.get("send_at"))
    named = [(kind, payload[f"{kind}_id"]) for kind in _NAMED if payload.get(f"{kind}_id") is not None]
    if faults := [_no_such(kind) for kind, resource_id in named if not _is_there(workspace_id, kind, resource_id)]:
        raise Invalid(*faults)
    if "message" in payload:
        _check_message(workspace_id, payload["message"], payload.get("channel_id"))


def filter_of(workspace_id: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the filter of the payload or its segment. Raises Invalid if there is no such segment."""
    condition = broadcast_choices.condition_of(workspace_id, payload)
    if condition is None:
        raise Invalid(_no_such("segment"))
    return condition


def forget_old(limit: int = 10_000) -> int:
    """Deletes up to `limit` rows of the oldest expired broadcast that has ended; returns how many."""
    return controlled_batches.forget_old(Broadcast, UNFINISHED, limit, *_FORGET_FURTHER)


class BroadcastMessageSchema(ResponseBody):
    text = fields.String(allow_none=True, metadata={"example": "Hello {{ contact.first_name }}!"})
    template = fields.Dict(allow_none=True, metadata={"example": None})
    attachments = fields.List(fields.Nested(AttachmentSchema))
    buttons = fields.List(fields.Nested(ButtonSchema))


class BroadcastSchema(ResponseBody):
    id = fields.String()
    name = fields.String(metadata={"example": "Autumn sale"})
    state = fields.String(validate=validate.OneOf(STATES))
    problem = fields.String(
        allow_none=True, metadata=about("Why it has paused by itself, and what to do.", example=None)
    )
    segment_id = fields.String(
        allow_none=True, metadata=about("The segment it is for; null: the filter was given.", example=None)
    )
    filter = fields.Dict(
        allow_none=True,
        metadata=about("Whom it is for; that of its segment from the start on, null before.", example=segments.EXAMPLE),
    )
    channel_id = fields.String(
        allow_none=True, metadata=about("The only channel it uses; null: that of each contact's latest conversation.")
    )
    message = fields.Nested(BroadcastMessageSchema, allow_none=True)
    automation_id = fields.String(allow_none=True, metadata=about("The automation it starts.", example=None))
    send_at = time("When it starts; null: at once.", allow_none=True)
    time_zone = fields.String(validate=validate.OneOf(TIME_ZONES), metadata=about("Whose clock `send_at` follows."))
    per_second = fields.Integer(allow_none=True)
    canary = fields.Boolean(metadata=about("Whether it waits after the first contact."))
    count = fields.Integer(metadata=about("How many contacts it is for; fixed soon after its start.", example=1200))
    handled = fields.Integer(metadata=about("How many of them were reached or skipped.", example=800))
    waiting = fields.Integer(metadata=about("How many messages are on their way to a provider.", example=60))
    sent = fields.Integer(metadata=about("How many messages were sent, those included that have arrived."))
    delivered = fields.Integer(metadata=about("How many of these were delivered; messages that were read count too."))
    read = fields.Integer(metadata=about("How many of these were read."))
    replied = fields.Integer(metadata=about("How many contacts wrote within 7 days of their message."))
    failed = fields.Integer(metadata=about("How many messages failed."))
    unknown = fields.Integer(  # type: ignore[assignment]
        metadata=about("How many messages have an outcome that is not known.")
    )
    started = fields.Integer(metadata=about("How many runs it has begun."))
    skipped = fields.Dict(
        keys=fields.String(validate=validate.OneOf(REASONS)),
        values=fields.Integer(),
        metadata=about("How many contacts were skipped, by reason.", example={"opted_out": 12}),
    )
    failures = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata=about("How many messages failed, by the code of their failure.", example={}),
    )
    created_by = fields.String(
        allow_none=True, metadata=about("Who created it.", example="tok_01kaj5bd40e6rr3f5y2kq0w9xz")
    )
    created_at = time("When it was created.")
    started_at = time("When it started; contacts created later are not in it.", allow_none=True)
    finished_at = time("When it was done or aborted.", allow_none=True)


class BroadcastPreviewSchema(ResponseBody):
    count = fields.Integer(metadata=about("How many contacts it would reach.", example=1180))
    is_complete = fields.Boolean(metadata=about("False if there was no time to look at all contacts.", example=True))
    left_out = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata=about("How many more contacts match and would be skipped, by reason.", example={"opted_out": 12}),
    )
    looked_at = fields.Integer(
        metadata=about("Of how many contacts it is known whether they would be skipped.", example=1192)
    )
    sample = fields.List(fields.Nested(ContactSchema), metadata=about("The newest contacts that match."))


class BroadcastRowSchema(ResponseBody):
    contact_id = fields.String()
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))
    reason = fields.String(
        allow_none=True, validate=validate.OneOf(REASONS), metadata=about("Why it was skipped.", example=None)
    )
    message_id = fields.String(allow_none=True, metadata=about("The message, whose `status` says what came of it."))
    run_id = fields.String(allow_none=True, metadata=about("The run that it began.", example=None))
    replied_at = time("When the contact first wrote within 7 days.", allow_none=True)
    at = time("When the contact was reached or skipped.")


def represent(broadcast: Broadcast) -> dict[str, Any]:
    """Returns the broadcast as the API shows it."""
    return represent_all([broadcast])[0]


def represent_all(found: Iterable[Broadcast]) -> list[dict[str, Any]]:
    """Returns the broadcasts as the API shows them, with one statement for all."""
    listed = list(found)
    counted = broadcast_counts.of([each.id for each in listed])
    return [represent_counted(each, counted[each.id]) for each in listed]


def represent_counted(broadcast: Broadcast, amounts: Mapping[str, int]) -> dict[str, Any]:
    """Returns the broadcast as the API shows it, with `amounts` from `broadcast_counts`."""
    message = broadcast.message and _shown(broadcast.message)
    return BroadcastSchema.of(broadcast, message=message, **broadcast_counts.shown(amounts))


def preview(workspace_id: str, condition: Mapping[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the contacts that a broadcast would reach now, as the API shows them."""
    found = broadcast_choices.preview(workspace_id, condition, payload)
    return BroadcastPreviewSchema.of(found, sample=[contacts.represent(each) for each in found.sample])


represent_row = BroadcastRowSchema.of


def _check_time(send_at: datetime | None) -> None:
    """Raises Invalid for a time too far ahead or past. A time within the past day means "now"."""
    if send_at is not None and clock.now() - send_at > timedelta(days=1):
        raise Invalid(Fault("/send_at", "This time has passed. Leave it out to send at once."))
    if send_at is not None and (send_at - clock.now()).days >= MOST_DAYS:
        raise Invalid(Fault("/send_at", f"Give a time within {MOST_DAYS} days."))


def _no_such(kind: str) -> Fault:
    return Fault(f"/{kind}_id", f"There is no such {kind} in this workspace.")


def _is_there(workspace_id: str, kind: str, resource_id: str) -> bool:
    """Returns whether the workspace has the resource, or a queued write will create it."""
    try:
        _NAMED[kind].find(workspace_id, resource_id)
    except NotFound:
        return bool(Job.will_make(workspace_id, kind, resource_id))
    return True


def _check_message(workspace_id: str, message: Mapping[str, Any], channel_id: str | None) -> None:
    try:
        media.check_uploads(workspace_id, [each["upload_id"] for each in message.get("attachments", ())])
        text, channel = message.get("text") or "", channel_id and Channel.find(workspace_id, channel_id)
        if channel and "{" not in text:  # a rendered template's size depends on the contact
            files, offered = len(message.get("attachments", ())), len(message.get("buttons", ()))
            sending_checks.check_size(channels.kind_of(channel), text, files, offered)
    except Invalid as error:
        raise Invalid(*(Fault(f"/message{fault.pointer}", fault.detail) for fault in error.faults)) from error
    except NotFound:  # a queued write will create the channel
        return


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
            raise Invalid(_no_such("segment"))
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


def _resume(broadcast: Broadcast) -> None:
    if broadcast.started_at is None:
        begin(broadcast)
    else:
        was_tried = broadcast.state == "canary" or not broadcast.canary or rows(_REACHED, (broadcast.id,))
        controlled_batches.set_state(broadcast, "running" if was_tried else "canary", problem=None)


def _abort(recorder: Recorder, broadcast: Broadcast) -> None:
    controlled_batches.set_state(broadcast, "aborted", problem=None)
    _tell(recorder, broadcast)


def _tell(recorder: Recorder, broadcast: Broadcast) -> None:
    recorder.record("broadcast.finished", {"broadcast": represent(Broadcast.get_by_id(broadcast.id))})


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"text": None, "template": None, "buttons": [], **message}
    return BroadcastMessageSchema.of(None, **shown | {"attachments": media.shown(message.get("attachments", ()))})


_BEGIN = """
    UPDATE broadcasts
    SET filter = %s, state = CASE WHEN canary THEN 'canary' ELSE 'running' END, started_at = now(), problem = NULL,
        due_at = now(), leased_until = NULL, wakes_at = NULL
    WHERE id = %s
"""
_REACHED = "SELECT 1 FROM broadcast_rows WHERE broadcast_id = %s AND outcome <> 'skipped' LIMIT 1"
_FORGET_FURTHER = (
    "DELETE FROM broadcast_deltas WHERE broadcast_id = %s",
    "DELETE FROM broadcast_counts WHERE broadcast_id = %s",
    "UPDATE uploads SET saved_reply_id = NULL WHERE saved_reply_id = %s",
)
