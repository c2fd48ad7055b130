"""Broadcasts: send a message to, or start an automation for, each contact of a segment."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app import bounds
from app.api.authentication import caller
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, is_dry_run, must_exist, steer
from app.domain.bodies.broadcasts import BroadcastCreate, BroadcastPatch
from app.domain.broadcasts import broadcasts
from app.domain.broadcasts.broadcasts import BroadcastPreviewSchema, BroadcastRowSchema, BroadcastSchema
from app.lib import ids
from app.lib.schemas import about
from app.models.broadcasts import OUTCOMES, STATES, Broadcast, BroadcastRow

blueprint = Blueprint(
    "broadcasts", __name__, description="A message, or the start of an automation, for each contact of a segment."
)


class BroadcastQuery(PageQuery):
    state = fields.String(validate=validate.OneOf(STATES))


class BroadcastRowQuery(PageQuery):
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))
    replied = fields.Boolean(metadata=about("Whether the contact wrote within 7 days."))


@reads(blueprint, "/broadcasts", "automations", BroadcastSchema, BroadcastQuery)
def list_broadcasts(query: dict[str, Any]) -> Document:
    """List broadcasts, newest first."""
    find = partial(Broadcast.newest, caller().workspace_id, query.get("state"))
    found = page_of(find, query, lambda broadcast: broadcast)
    return found | {"data": broadcasts.represent_all(found["data"])}


@accepts(blueprint, "POST /broadcasts", "automations", BroadcastSchema, BroadcastCreate, made=True)
@blueprint.alt_response(
    200, schema=envelope(BroadcastPreviewSchema), description="The result of a dry run.", success=True
)
def create_broadcast(body: dict[str, Any]) -> Response:
    """Send a message to each contact of a segment or filter, or start an automation for each.

    With `dry_run`, only count the contacts. Each contact is reached once. The contacts are fixed when the broadcast
    starts. A channel's other messages go before the messages of broadcasts, and quiet hours follow each contact's time
    zone. Read the broadcast again to follow its progress.
    """
    workspace_id = caller().workspace_id
    if is_dry_run(body):
        condition = broadcasts.filter_of(workspace_id, body)
        broadcasts.check(workspace_id, body)
        with bounds.reading_segment(workspace_id):
            return respond(200, {"data": broadcasts.preview(workspace_id, condition, body)})
    return accept("broadcasts.create", body, ids.new("bct"), partial(broadcasts.check, workspace_id, body))


shows(blueprint, "broadcast", "automations", BroadcastSchema, "Show a broadcast and its results so far.")


@accepts(blueprint, "PATCH /broadcasts/<broadcast_id>", "automations", BroadcastSchema, BroadcastPatch)
def update_broadcast(body: dict[str, Any], broadcast_id: str) -> Response:
    """Change the given fields of a broadcast that is scheduled."""

    def check() -> None:
        if (found := must_exist("broadcast", broadcast_id)) is not None:
            broadcasts.refuse_begun(found)
        broadcasts.check(caller().workspace_id, body)

    return accept("broadcasts.update", body, broadcast_id, check)


@reads(blueprint, "/broadcasts/<broadcast_id>/rows", "automations", BroadcastRowSchema, BroadcastRowQuery)
def list_broadcast_rows(query: dict[str, Any], broadcast_id: str) -> Document:
    """List the contacts that were reached or skipped, with their outcomes, the latest first."""
    found = Broadcast.find(caller().workspace_id, broadcast_id)
    find = partial(BroadcastRow.newest, found.id, query.get("outcome"), query.get("replied"))
    return page_of(find, query, broadcasts.represent_row, order=["number"])


@accepts(blueprint, "POST /broadcasts/<broadcast_id>/pause", "automations", BroadcastSchema)
def pause_broadcast(broadcast_id: str) -> Response:
    """Pause a broadcast: no more contacts are reached. Messages in an outbox are still sent."""
    return steer("broadcasts.pause", broadcast_id, "paused")


@accepts(blueprint, "POST /broadcasts/<broadcast_id>/continue", "automations", BroadcastSchema)
def continue_broadcast(broadcast_id: str) -> Response:
    """Continue a broadcast after a pause, or with the rest after the canary."""
    return steer("broadcasts.continue", broadcast_id, "running")


@accepts(blueprint, "POST /broadcasts/<broadcast_id>/abort", "automations", BroadcastSchema)
def abort_broadcast(broadcast_id: str) -> Response:
    """End a broadcast.

    Contacts that it has not reached get nothing; messages in an outbox are still sent.
    """
    return steer("broadcasts.abort", broadcast_id, "aborted")
