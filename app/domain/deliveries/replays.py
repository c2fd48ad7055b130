"""Replays: sends deliveries that a filter selects again, and records the outcome for each.

`replay_choices` stores the selection at the start, so that later deliveries are not added. `replay_batches` works
through it. A delivery that was claimed or sent in the meantime is skipped.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any

from marshmallow import fields, validate
from peewee import fn

from app import mailbox
from app.config import settings
from app.database import count, database, rows
from app.domain.deliveries import deliveries, replay_choices
from app.domain.deliveries.replay_choices import Preview
from app.domain.work import audit
from app.domain.work.changes import Change, Effect
from app.errors import Conflict, NotFound
from app.lib.schemas import ResponseBody, about, time
from app.mailbox import Mail, Waiting
from app.models.deliveries import Delivery
from app.models.replays import OUTCOMES, STATES, Replay, ReplayPart

# Each replay is a mailbox of its own, so that none waits for another's limit, pause or canary.
MAIL = Mail(table="replays", owner="id", queue="replays", order="id", exclusive=True)
WAITING = Waiting(MAIL, "wakes_at")
MOST_PER_SECOND = 1_000
MOST_FATES = 10_000
# The states from which each state can be reached. Entering the current state changes nothing.
_FROM = {"paused": ("canary", "running"), "running": ("canary", "paused"), "aborted": ("canary", "running", "paused")}


def create(change: Change) -> Effect:
    """Starts a replay of the deliveries that `filter` selects now. The change's target is the replay.

    With `canary`, the replay sends one delivery and waits. Raises Conflict if the matches cannot be counted in time.
    """
    payload = change.payload
    chosen = replay_choices.write_down(change.workspace_id, payload["filter"], change.target)
    state = "canary" if payload.get("canary") else "running"
    Replay.insert(
        id=change.target,
        workspace_id=change.workspace_id,
        state=state if chosen else "done",
        filter=replay_choices.whole(payload["filter"]),
        count=chosen,
        per_second=payload.get("per_second"),
        created_by=change.actor_id,
        trace_id=change.cause.trace_id,
        due_at=fn.now() if chosen else None,
        created_at=fn.now(),
        finished_at=None if chosen else fn.now(),
    ).execute()
    audit.record(change, "replay", change.target, {**payload, "count": chosen})
    database.after_commit(partial(mailbox.ring, MAIL, change.target))
    return Effect("made", "replay", change.target)


def pause(change: Change) -> Effect:
    """Pauses the replay. Raises NotFound, and Conflict if it has ended."""
    return _move(change, "paused")


def go_on(change: Change) -> Effect:
    """Continues the replay after a pause or its canary.

    Raises NotFound, and Conflict if the replay has ended.
    """
    effect = _move(change, "running")
    database.after_commit(partial(mailbox.ring, MAIL, change.target))
    return effect


def abort(change: Change) -> Effect:
    """Aborts the replay. Deliveries that it has not reached are unchanged.

    Raises NotFound, and Conflict if the replay is done.
    """
    effect = _move(change, "aborted")
    ReplayPart.delete().where(ReplayPart.replay_id == change.target).execute()
    return effect


def refuse_ended(replay: Replay, wanted: str) -> None:
    """Raises Conflict if the replay has ended in a state other than `wanted`."""
    if replay.is_finished and replay.state != wanted:
        raise Conflict(f"This replay is {replay.state}.")


def preview(workspace_id: str, given: dict[str, Any], enabling: Collection[str] = ()) -> dict[str, Any]:
    """Previews the deliveries that a replay with this filter would send now, as in the API.

    Counts as if the endpoints `enabling` were enabled first. Raises Conflict.
    """
    return represent_preview(workspace_id, replay_choices.preview(workspace_id, given, enabling))


def represent_preview(workspace_id: str, found: Preview) -> dict[str, Any]:
    """Returns the preview as in the API, with the deliveries of its sample."""
    sample = Delivery.in_workspace(workspace_id).where(Delivery.id.in_(found.sample)).order_by(Delivery.id)
    shown = [deliveries.represent(each) for each in (sample if found.sample else ())]
    return ReplayPreviewSchema.of(found, sample=shown)


def fates(replay: Replay) -> dict[str, int] | None:
    """Counts the deliveries that the replay has sent, by their status now.

    Returns None if it has sent more than MOST_FATES, which would take too long to count.
    """
    if replay.sent > MOST_FATES:
        return None
    return dict(rows(_FATES, (replay.id,)))


def forget_old(limit: int = 10_000) -> int:
    """Deletes up to `limit` rows of the oldest expired replay, and then the replay; returns how many.

    Also deletes replays that still wait for a decision.
    """
    oldest = rows(
        """
        SELECT id FROM replays WHERE created_at < now() - %s * interval '1 day' AND state <> 'running'
        ORDER BY created_at LIMIT 1
        """,
        (settings().history_retention_days,),
    )
    if not oldest:
        return 0
    forgotten = count(
        "DELETE FROM replay_rows WHERE replay_id = %s AND number IN ("
        "SELECT number FROM replay_rows WHERE replay_id = %s ORDER BY number LIMIT %s)",
        (*oldest[0], *oldest[0], limit),
    )
    if forgotten < limit:
        count("DELETE FROM replay_parts WHERE replay_id = %s", oldest[0])
        forgotten += count("DELETE FROM replays WHERE id = %s", oldest[0])
    return forgotten


class ReplayPreviewSchema(ResponseBody):
    count = fields.Integer(metadata=about("How many would go out; exact."))
    left_out = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata=about("How many more match and cannot be sent, by reason.", example={"body_gone": 12}),
    )
    may_arrive_twice = fields.Integer(
        metadata=about("How many of the count may have arrived before: delivered, timed out or reset.")
    )
    sample = fields.List(fields.Nested(deliveries.DeliverySchema), metadata=about("The first that would go out."))


class ChosenSchema(ResponseBody):
    """A replay's filter, with all its fields."""

    endpoint_ids = fields.List(fields.String(), allow_none=True)
    except_endpoint_ids = fields.List(fields.String(), allow_none=True)
    statuses = fields.List(fields.String())
    kinds = fields.List(fields.String(), allow_none=True)
    error_codes = fields.List(fields.String(), allow_none=True)
    status_codes = fields.List(fields.Integer(), allow_none=True)
    since = time("As given.", allow_none=True)
    until = time("As given.", allow_none=True)


class ReplaySchema(ResponseBody):
    id = fields.String()
    state = fields.String(validate=validate.OneOf(STATES))
    filter = fields.Nested(ChosenSchema)
    count = fields.Integer(metadata=about("How many deliveries it is about; fixed when it was made."))
    sent = fields.Integer(metadata=about("How many it has sent so far."))
    skipped = fields.Integer(metadata=about("How many it has skipped so far; its rows say why."))
    per_second = fields.Integer(allow_none=True)
    created_by = fields.String(
        allow_none=True, metadata=about("Who requested it; null: a command.", example="tok_01kaj5bd40e6rr3f5y2kq0w9xz")
    )
    created_at = time("When it was made.")
    finished_at = time("When it was done or aborted.", allow_none=True)


class ReplayRowSchema(ResponseBody):
    delivery_id = fields.String()
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))
    reason = fields.String(
        allow_none=True,
        validate=validate.OneOf(list(replay_choices.REASONS)),
        metadata=about("Why it was skipped.", example=None),
    )
    sent_as = fields.String(
        allow_none=True,
        metadata=about(
            "The delivery that went out: the same, or a new one of a delivery that had arrived.",
            example="dlv_01kaj5bd40e6rr3f5y2kq0w9xz",
        ),
    )
    at = time("When the replay reached it.")


def represent(replay: Replay) -> dict[str, Any]:
    """Returns the replay as in the API."""
    chosen = replay_choices.whole(replay.filter)
    times = {name: datetime.fromisoformat(chosen[name]) for name in ("since", "until") if chosen[name]}
    return ReplaySchema.of(replay, filter=chosen | times)


represent_row = ReplayRowSchema.of


def _move(change: Change, state: str) -> Effect:
    """Changes the replay's state. Waits for a batch in progress, which has locked the replay."""
    found = rows(
        "SELECT state FROM replays WHERE id = %s AND workspace_id = %s FOR NO KEY UPDATE",
        (change.target, change.workspace_id),
    )
    if not found:
        raise NotFound()
    if found != [(state,)]:
        if found[0][0] not in _FROM[state]:
            raise Conflict(f"This replay is {found[0][0]}.")
        _set_state(change.target, state)
        audit.record(change, "replay", change.target, {})
    return Effect("changed", "replay", change.target)


def _set_state(replay_id: str, state: str) -> None:
    # A resumed replay keeps its rate limit, and does not catch up.
    count(
        """
        UPDATE replays
        SET state = moved.state, leased_until = NULL,
            due_at = CASE WHEN moved.state = 'running' AND (paced_until > now()) IS NOT TRUE THEN now() END,
            wakes_at = CASE WHEN moved.state = 'running' AND paced_until > now() THEN paced_until END,
            finished_at = CASE moved.state WHEN 'aborted' THEN now() END
        FROM (SELECT %s AS state) AS moved WHERE id = %s
        """,
        (state, replay_id),
    )


_FATES = """
    SELECT deliveries.status, count(*) FROM replay_rows JOIN deliveries ON deliveries.id = replay_rows.sent_as
    WHERE replay_rows.replay_id = %s AND replay_rows.outcome = 'sent' GROUP BY deliveries.status
"""
