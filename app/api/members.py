"""Members: the people who work in the workspace, and their availability."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response

from app.api.authentication import caller
from app.api.lists import PageQuery, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept
from app.domain.bodies.members import MemberPatch
from app.domain.people import members
from app.domain.people.members import MemberSchema

blueprint = Blueprint("members", __name__, description="The people who work in the workspace.")


@reads(blueprint, "/members", "inbox", MemberSchema, PageQuery)
def list_members(query: dict[str, Any]) -> Document:
    """List members, newest first."""
    find = partial(members.newest, caller().workspace_id)
    return page_of(find, query, members.represent, order=["member_id"])


shows(blueprint, "member", "inbox", MemberSchema, "Show a member.")


@accepts(blueprint, "PATCH /members/<member_id>", "inbox", MemberSchema, MemberPatch)
def update_member(body: dict[str, Any], member_id: str) -> Response:
    """Change a member's availability, and the most open conversations that they are assigned."""
    return accept("members.update", body, member_id)
