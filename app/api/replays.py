"""Replays: resends selected deliveries of any endpoints, and shows their outcomes."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.writes import accept, idempotency_key, must_exist
from app.domain.bodies.replays import ReplayCreate, ReplayFilter
from app.domain.deliveries import replays
from app.domain.deliveries.replays import ReplayPreviewSchema, ReplayRowSchema, ReplaySchema
from app.domain.work import controlled_batches
from app.errors import NotFound
from app.lib import ids
from app.models.replays import OUTCOMES, Replay, ReplayRow

blueprint = Blueprint("replays", __name__, description="Chosen deliveries sent again, over any number of endpoints.")


class RowQuery(PageQuery):
    outcome = fields.String(validate=validate.OneOf(OUTCOMES))


@blueprint.route("/workspaces/<workspace>/webhooks/replays", methods=["GET"])
@authorize("webhooks")
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(ReplaySchema, many=True))
def list_replays(query: dict[str, Any]) -> Response:
    """List replays, newest first."""
    found = Replay.in_workspace(caller().workspace_id)
    return respond(200, page(found, Replay, query, replays.represent))


@blueprint.route("/workspaces/<workspace>/webhooks/replays", methods=["POST"])
@authorize("webhooks")
@blueprint.arguments(ReplayCreate)
@accepts_write(ReplaySchema, made=True)
@blueprint.alt_response(200, schema=envelope(ReplayPreviewSchema), description="The result of a dry run.", success=True)
def create_replay(body: dict[str, Any]) -> Response:
    """Resend selected deliveries, oldest first, in a worker, or count them with `dry_run`.

    Read the replay again to follow its progress. Its deliveries are fixed when it begins. A delivery that arrives or
    is sent before the replay reaches it is skipped.
    """
    body["filter"] = chosen = ReplayFilter.as_text(body["filter"])
    if body.pop("dry_run", False):
        idempotency_key()  # a dry run uses no key, but an invalid key must be refused
        return respond(200, {"data": replays.preview(caller().workspace_id, chosen)})
    return accept("replays.create", body, ids.new("rpl"))


@blueprint.route("/workspaces/<workspace>/webhooks/replays/<replay_id>", methods=["GET"])
@authorize("webhooks")
@blueprint.response(200, envelope(ReplaySchema))
def show_replay(replay_id: str) -> Response:
    """Show a replay and its progress."""
    return respond(200, {"data": replays.represent(Replay.find(caller().workspace_id, replay_id))})


@blueprint.route("/workspaces/<workspace>/webhooks/replays/<replay_id>/rows", methods=["GET"])
@authorize("webhooks")
@blueprint.arguments(RowQuery)
@blueprint.response(200, envelope(ReplayRowSchema, many=True))
def list_replay_rows(query: dict[str, Any], replay_id: str) -> Response:
    """List the outcomes of the deliveries that the replay has reached, the latest first."""
    found = Replay.find(caller().workspace_id, replay_id)
    return respond(
        200,
        page_of(
            lambda before, limit: ReplayRow.newest(found.id, query.get("outcome"), before, limit),
            {**query, "replay_id": found.id},
            replays.represent_row,
            order=["number"],
        ),
    )


@blueprint.route("/workspaces/<workspace>/webhooks/replays/<replay_id>/pause", methods=["POST"])
@authorize("webhooks")
@accepts_write(ReplaySchema)
def pause_replay(replay_id: str) -> Response:
    """Pause a replay: nothing more is sent until it is continued."""
    return _move("replays.pause", replay_id, "paused")


@blueprint.route("/workspaces/<workspace>/webhooks/replays/<replay_id>/continue", methods=["POST"])
@authorize("webhooks")
@accepts_write(ReplaySchema)
def continue_replay(replay_id: str) -> Response:
    """Continue a replay after a pause, or with the rest after the canary."""
    return _move("replays.continue", replay_id, "running")


@blueprint.route("/workspaces/<workspace>/webhooks/replays/<replay_id>/abort", methods=["POST"])
@authorize("webhooks")
@accepts_write(ReplaySchema)
def abort_replay(replay_id: str) -> Response:
    """End a replay. Deliveries that it has sent are not recalled; the rest are unchanged."""
    return _move("replays.abort", replay_id, "aborted")


def _move(kind: str, replay_id: str, state: str) -> Response:
    def check() -> None:
        must_exist("replay", replay_id)
        try:
            controlled_batches.refuse_ended(Replay.find(caller().workspace_id, replay_id), state)
        except NotFound:  # a queued write will create it
            return

    return accept(kind, {}, replay_id, check)
