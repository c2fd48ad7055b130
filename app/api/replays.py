"""Replays: resends selected deliveries of any endpoints, and shows their outcomes."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import caller
from app.api.lists import PageQuery, envelope, page, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, is_dry_run, steer
from app.domain.bodies.replays import ReplayCreate, ReplayFilter
from app.domain.deliveries import replays
from app.domain.deliveries.replays import ReplayPreviewSchema, ReplayRowSchema, ReplaySchema
from app.lib import ids
from app.models.replays import OUTCOMES, Replay, ReplayRow

blueprint = Blueprint("replays", __name__, description="Chosen deliveries sent again, over any number of endpoints.")


class RowQuery(PageQuery):
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))


@reads(blueprint, "/webhooks/replays", "webhooks", ReplaySchema, PageQuery)
def list_replays(query: dict[str, Any]) -> Document:
    """List replays, newest first."""
    return page(Replay, query, replays.represent)


@accepts(blueprint, "POST /webhooks/replays", "webhooks", ReplaySchema, ReplayCreate, made=True)
@blueprint.alt_response(200, schema=envelope(ReplayPreviewSchema), description="The result of a dry run.", success=True)
def create_replay(body: dict[str, Any]) -> Response:
    """Resend selected deliveries, oldest first, in a worker, or count them with `dry_run`.

    Read the replay again to follow its progress. Its deliveries are fixed when it begins. A delivery that arrives or
    is sent before the replay reaches it is skipped.
    """
    body["filter"] = chosen = ReplayFilter.as_text(body["filter"])
    if is_dry_run(body):
        return respond(200, {"data": replays.preview(caller().workspace_id, chosen)})
    return accept("replays.create", body, ids.new("rpl"))


shows(blueprint, "replay", "webhooks", ReplaySchema, "Show a replay and its progress.")


@reads(blueprint, "/webhooks/replays/<replay_id>/rows", "webhooks", ReplayRowSchema, RowQuery)
def list_replay_rows(query: dict[str, Any], replay_id: str) -> Document:
    """List the outcomes of the deliveries that the replay has reached, the latest first."""
    found = Replay.find(caller().workspace_id, replay_id)
    find = partial(ReplayRow.newest, found.id, query.get("outcome"))
    return page_of(find, query, replays.represent_row, order=["number"])


@accepts(blueprint, "POST /webhooks/replays/<replay_id>/pause", "webhooks", ReplaySchema)
def pause_replay(replay_id: str) -> Response:
    """Pause a replay: nothing more is sent until it is continued."""
    return steer("replays.pause", replay_id, "paused")


@accepts(blueprint, "POST /webhooks/replays/<replay_id>/continue", "webhooks", ReplaySchema)
def continue_replay(replay_id: str) -> Response:
    """Continue a replay after a pause, or with the rest after the canary."""
    return steer("replays.continue", replay_id, "running")


@accepts(blueprint, "POST /webhooks/replays/<replay_id>/abort", "webhooks", ReplaySchema)
def abort_replay(replay_id: str) -> Response:
    """End a replay. Deliveries that it has sent are not recalled; the rest are unchanged."""
    return steer("replays.abort", replay_id, "aborted")
