"""Members: the people who work in the workspace, and their availability."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response

from app.api.authentication import authorize, caller
from app.api.jobs import accepts_write
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.writes import accept
from app.domain.bodies.members import MemberPatch
from app.domain.people import members
from app.domain.people.members import MemberSchema

blueprint = Blueprint("members", __name__, description="The people who work in the workspace.")


@blueprint.route("/workspaces/<workspace>/members", methods=["GET"])
@authorize("inbox")
@blueprint.arguments(PageQuery)
@blueprint.response(200, envelope(MemberSchema, many=True))
def list_members(query: dict[str, Any]) -> Response:
    """List members, newest first."""
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
    """Change a member's availability, and the most open conversations that they are assigned."""
    return accept("members.update", body, member_id)
