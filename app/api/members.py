"""Members: who works in the workspace, and who is available for conversations."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.writes import accept
from app.domain.assignment import member_changes
from app.domain.people import members
from app.domain.people.members import AVAILABILITIES, MemberSchema
from app.lib.schemas import RequestBody, StrictBoolean, StrictInteger, about

blueprint = Blueprint("members", __name__, description="The people who work in the workspace.")


class MemberPatch(RequestBody):
    """The body that changes a member."""

    availability = fields.String(
        validate=validate.OneOf(AVAILABILITIES),
        metadata=about("Whether channels with `balanced` assignment give them conversations.", example="away"),
    )
    capacity = StrictInteger(
        allow_none=True,
        validate=validate.Range(0, member_changes.MOST_CAPACITY),
        metadata=about("How many open conversations the rule assigns at most; null: no limit.", example=20),
    )
    reassign = StrictBoolean(
        metadata=about(
            "Only with `away`, and true if it is left out: their conversations whose contact waits for an answer, on "
            "channels with `balanced` assignment, go to others.",
            example=False,
        )
    )


@blueprint.route("/workspaces/<workspace>/members", methods=["GET"])
@authorize("inbox")
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(MemberSchema, many=True))
def list_members(query: dict[str, Any]) -> Response:
    """List members, the latest first."""
    find = partial(members.newest, caller().workspace_id)
    return respond(200, page_of(find, query, members.represent, order=["member_id"]))


@blueprint.route("/workspaces/<workspace>/members/<member_id>", methods=["GET"])
@authorize("inbox")
@blueprint.response(200, envelope(MemberSchema))
def show_member(member_id: str) -> Response:
    """Show a member."""
    return respond(200, {"data": members.represent(members.find(caller().workspace_id, member_id))})


@blueprint.route("/workspaces/<workspace>/members/<member_id>", methods=["PATCH"])
@authorize("inbox")
@blueprint.arguments(MemberPatch)
@accepts_write(MemberSchema)
def update_member(body: dict[str, Any], member_id: str) -> Response:
    """Change whether a member is available for conversations, and how many open ones they take."""
    who = caller()
    check = partial(member_changes.check, who.workspace_id, body, member_id, who.token_id)
    return accept("members.update", body, member_id, check)
