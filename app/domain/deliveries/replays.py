"""Replays: sends deliveries that a filter selects again, and records the outcome for each.

`replay_choices` stores the selection at the start, so that later deliveries are not added. A delivery that was claimed
or sent in the meantime is skipped.

A replay works in steps, each a transaction of bounded size. A step writes the deliveries that it sends, a row for each
delivery that it reached, and the replay's progress. The sum of the replay's `sent` and `skipped` is also its position.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import sleep
from typing import Any

import structlog
from marshmallow import fields, validate
from peewee import fn

from app import mailbox
from app.database import count, database, rows, transaction
from app.domain.deliveries import deliveries, lanes, replay_choices, resends
from app.domain.deliveries.replay_choices import PART, Preview
from app.domain.deliveries.resends import Locked
from app.domain.work import audit, controlled_batches
from app.domain.work.changes import Change, Effect
from app.lib.schemas import ResponseBody, about, time
from app.mailbox import Claimed, Mail, Waiting
from app.models.deliveries import Delivery
from app.models.replays import OUTCOMES, STATES, Replay

log = structlog.get_logger(__name__)

# Each replay has its own mailbox, so that none waits for another's limit, pause or canary.
MAIL = Mail(table="replays", owner="id", queue="replays", order="id", exclusive=True)
WAITING = Waiting(MAIL, "wakes_at")
MOST_FATES = 10_000
# A step examines at least this many deliveries, even if it may send fewer: skipping does not count towards the limit.
LEAST_LOOKED_AT = 50
# The pause while another transaction has locked the next delivery.
PAUSE_SECONDS = 0.01


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
    return controlled_batches.move(change, Replay, MAIL, "paused")


def go_on(change: Change) -> Effect:
    """Continues the replay after a pause or its canary. Raises NotFound; Conflict if it has ended."""
    return controlled_batches.move(change, Replay, MAIL, "running")


def abort(change: Change) -> Effect:
    """Aborts the replay: the rest stays unchanged. Raises NotFound; Conflict if the replay is done."""
    return controlled_batches.move(change, Replay, MAIL, "aborted")


def preview(workspace_id: str, given: dict[str, Any], enabling: Collection[str] = ()) -> dict[str, Any]:
    """Like `replay_choices.preview`, in the form of the API."""
    return represent_preview(workspace_id, replay_choices.preview(workspace_id, given, enabling))


def represent_preview(workspace_id: str, found: Preview) -> dict[str, Any]:
    """Returns the preview as in the API, with the deliveries of its sample."""
    sample = Delivery.in_workspace(workspace_id).where(Delivery.id.in_(found.sample)).order_by(Delivery.id)
    shown = [deliveries.represent(each) for each in (sample if found.sample else ())]
    return ReplayPreviewSchema.of(found, sample=shown)


def fates(replay: Replay) -> dict[str, int] | None:
    """Counts the deliveries that the replay sent, by current status; None above MOST_FATES."""
    if replay.sent > MOST_FATES:
        return None
    return dict(rows(_FATES, (replay.id,)))


def forget_old(limit: int = 10_000) -> int:
    """Deletes up to `limit` rows of the oldest expired replay that is not running; returns how many."""
    return controlled_batches.forget_old(Replay, ["running"], limit)


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
    """Returns the replay as the API shows it."""
    chosen = replay_choices.whole(replay.filter)
    times = {name: datetime.fromisoformat(chosen[name]) for name in ("since", "until") if chosen[name]}
    return ReplaySchema.of(replay, filter=chosen | times)


represent_row = ReplayRowSchema.of


def work(replay_id: str) -> None:
    """Continues the replay until it ends, has to wait, or the time slice is over."""
    mailbox.serve(MAIL, replay_id, 1, _step)


@dataclass(frozen=True, slots=True)
class _Row:
    """The outcome for a delivery: sent if `reason` is None, otherwise skipped for that reason."""

    delivery_id: str
    status: str = ""
    endpoint_id: str = ""
    reason: str | None = None


def _step(claimed: Sequence[Claimed]) -> None:
    with transaction():
        if not mailbox.holding(MAIL, claimed):
            log.warning("replay.not_held", replay=claimed[0].id)
            return
        replay = Replay.get_by_id(claimed[0].id)
        room = controlled_batches.allowed(replay, PART)
        batch = _next(replay, room) if room else []
        sent_as = resends.send_again({row.delivery_id: row.status for row in batch if row.reason is None})
        _save_rows(replay, batch, sent_as)
        _save(replay, len(sent_as), len(batch) - len(sent_as))
    if sent_as:
        lanes.ring({row.endpoint_id for row in batch if row.reason is None})
    if replay.sent + replay.skipped + len(batch) == replay.count:
        log.info("replay.finished", request_id=replay.trace_id, replay=replay.id, count=replay.count)
    elif room and not batch:
        sleep(PAUSE_SECONDS)


def _next(replay: Replay, room: int) -> list[_Row]:
    """Returns the outcomes for the replay's next deliveries, in order, with these locked.

    Stops before the first delivery that another transaction has locked, or that would be sent beyond `room`. Skipped
    deliveries take no room. May lock more deliveries than it returns.
    """
    part, place = divmod(replay.sent + replay.skipped, PART)
    look_at = max(room, LEAST_LOOKED_AT)
    [(ids, claims)] = rows(
        "SELECT delivery_ids[%(first)s:%(last)s], claims[%(first)s:%(last)s] FROM replay_parts"
        " WHERE replay_id = %(id)s AND number = %(part)s",
        {"first": place + 1, "last": place + look_at, "id": replay.id, "part": part},
    )
    locked = resends.lock(ids)
    gone = set(ids) - locked.keys()
    if gone:
        gone -= {id for (id,) in rows("SELECT id FROM deliveries WHERE id = ANY(%s)", (list(gone),))}
    # Reads the endpoints without locks: senders lock endpoints before deliveries. If an endpoint stops at this moment,
    # the following sweep holds what is sent here.
    owners = list({each.endpoint_id for each in locked.values()})
    states = dict(rows("SELECT id, state FROM endpoints WHERE id = ANY(%s)", (owners,)))
    kept = resends.with_bodies({each.event_id for each in locked.values()})
    batch: list[_Row] = []
    for delivery_id, claim in zip(ids, claims, strict=True):
        if delivery_id in gone:
            batch.append(_Row(delivery_id, reason="expired"))
        elif (delivery := locked.get(delivery_id)) is None:
            break
        else:
            state, is_kept = states.get(delivery.endpoint_id, "deleted"), delivery.event_id in kept
            reason = _reason(delivery, claim, state, is_kept=is_kept)
            room -= reason is None
            if room < 0:
                break
            batch.append(_Row(delivery_id, delivery.status, delivery.endpoint_id, reason))
    return batch


def _reason(delivery: Locked, claim: int, state: str, *, is_kept: bool) -> str | None:
    """Returns why the delivery cannot be sent, as a key of REASONS; None if it can.

    `claim`: its claim number when the replay chose it. `state`: of its endpoint. `is_kept`: its body still exists.
    """
    if delivery.status == "delivered" and delivery.claim != claim:
        return "delivered"
    if state != "active":
        return f"endpoint_{state}"
    if delivery.status == "cancelled":
        return "discarded"
    if delivery.is_in_progress:
        return "in_progress"
    if delivery.claim != claim:
        return "sent_meanwhile"
    return None if is_kept else "body_gone"


def _save_rows(replay: Replay, batch: Sequence[_Row], sent_as: Mapping[str, str]) -> None:
    if batch:
        count(
            """
            INSERT INTO replay_rows (workspace_id, replay_id, number, delivery_id, outcome, reason, sent_as)
            SELECT %s, %s, %s + place, id, CASE WHEN sent_as IS NULL THEN 'skipped' ELSE 'sent' END, reason, sent_as
            FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS made(id, reason, sent_as, place)
            """,
            (
                *(replay.workspace_id, replay.id, replay.sent + replay.skipped, [row.delivery_id for row in batch]),
                *([row.reason for row in batch], [sent_as.get(row.delivery_id) for row in batch]),
            ),
        )


def _save(replay: Replay, sent: int, skipped: int) -> None:
    """Records progress. Ends the replay, or makes it wait after its canary or for its rate limit."""
    controlled_batches.save(replay, sent, sent=sent, skipped=skipped)
    done = replay.sent + replay.skipped + sent + skipped
    is_last = done == replay.count
    if is_last:
        controlled_batches.set_state(replay, "done")
    count("DELETE FROM replay_parts WHERE replay_id = %s AND number < %s", (replay.id, done // PART + is_last))


_FATES = """
    SELECT deliveries.status, count(*) FROM replay_rows JOIN deliveries ON deliveries.id = replay_rows.sent_as
    WHERE replay_rows.replay_id = %s AND replay_rows.outcome = 'sent' GROUP BY deliveries.status
"""
