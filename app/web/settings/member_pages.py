"""Members: who belongs to the workspace, their roles, and their capacities."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.database import transaction
from app.domain.assignment import member_changes
from app.domain.bodies.members import MemberPatch
from app.domain.conversations import conversation_counts
from app.domain.people import emails, links, members
from app.domain.people.links import Made
from app.domain.people.roles import ROLES
from app.errors import Conflict, Fault, Invalid
from app.web import writes
from app.web.access import page, viewer, workspace_id
from app.web.forms import Answer, checked, errors_of, status_of, typed, whole
from app.web.redirects import to

blueprint = Blueprint("member_pages", __name__, url_prefix="/workspaces/<workspace>/settings/members")

OPENS = {
    "owner": "everything, members included",
    "admin": "everything but members: tokens, endpoints, replays, imports and exports, billing",
    "agent": "the inbox, contacts, the dashboard, runs, and resending single deliveries",
}
_NO_CAPACITY = f"Give a whole number up to {member_changes.MOST_CAPACITY:,}, or nothing: then there is no limit."


@blueprint.get("")
@page("members.see")
def index() -> str:
    """Lists the members; for viewers who may manage them, also invitations, and a form to invite."""
    return _page("", "agent", {})


@blueprint.post("/invite")
@page("members.manage")
def invite() -> Answer:
    """Invites somebody by e-mail, and redirects to the members.

    If no e-mail can be sent, shows the link, in this response only. If it is refused, shows the form again.
    """
    email, role = request.form.get("email", "").strip(), request.form.get("role", "")
    try:
        with transaction():
            made = links.invite(workspace_id(), email, role, viewer().actor_id)
            if emails.can_be_sent():
                emails.arrange_invitation(made.link_id)
    except Invalid as error:
        return _page(email, role, errors_of(error)), 422
    except Conflict as error:
        return _page(email, role, {"email": error.detail}), 409
    if not emails.can_be_sent():
        return _link(made)
    return _done(f"An invitation is on its way to {made.account.email}. It is valid for 7 days.")


@blueprint.post("/invitations/<link_id>/renew")
@page("members.manage")
def renew(link_id: str) -> Answer:
    """Replaces the link of an invitation, and shows the new one, in this response only."""
    return _link(links.replace(workspace_id(), link_id, viewer().actor_id))


@blueprint.post("/invitations/<link_id>/withdraw")
@page("members.manage")
def withdraw(link_id: str) -> Response:
    """Withdraws an invitation, and redirects to the members. Safe to repeat."""
    links.withdraw(workspace_id(), link_id, viewer().actor_id)
    return _done("The invitation was withdrawn.")


@blueprint.post("/<member_id>/work")
@page("availability.manage")
def change_work(member_id: str) -> Answer:
    """Changes a member's availability and capacity. If refused, shows the page again."""
    members.find(workspace_id(), member_id)
    given = typed("availability", "was", "capacity")
    try:
        wanted = checked(MemberPatch(), _work(given))
        job = writes.submit("members.update", wanted, member_id)
    except (Invalid, Conflict) as error:
        said = error.faults[0].detail if isinstance(error, Invalid) else error.detail
        refused = {"member_id": member_id, "capacity": given["capacity"], "said": said}
        return _page("", "agent", {}, refused), status_of(error)
    return to("member_pages.index", "The member was changed." if job.is_finished else None)


@blueprint.post("/<member_id>/role")
@page("members.manage")
def change_role(member_id: str) -> Response:
    """Changes a member's role, and redirects to the members. If it is refused, the page says why."""
    try:
        members.change_role(workspace_id(), member_id, request.form.get("role", ""), viewer().actor_id)
    except (Conflict, Invalid) as error:
        return _done(error.detail, "error")
    return _done("The role was changed.")


@blueprint.post("/<member_id>/remove")
@page("members.manage")
def remove(member_id: str) -> Response:
    """Removes a member, and redirects to the members. A Conflict is shown there.

    Viewers who remove themselves are redirected to the choice of workspaces.
    """
    try:
        member_changes.remove(workspace_id(), member_id, viewer().actor_id)
    except Conflict as error:
        return _done(error.detail, "error")
    if member_id == viewer().actor_id:
        flash(f"You have left {viewer().workspace_name}.", "good")
        return redirect(url_for("start.choose"), 303)
    return _done("The member was removed.")


def _work(given: dict[str, str]) -> dict[str, Any]:
    """Returns the body of the change. Raises Invalid.

    Leaves out an unchanged `availability`, because becoming away again would hand back conversations.
    """
    capacity = whole(given["capacity"]) if given["capacity"].strip() else None
    if isinstance(capacity, str) or (capacity or 0) > member_changes.MOST_CAPACITY:
        raise Invalid(Fault("/capacity", _NO_CAPACITY))
    wanted: dict[str, Any] = {"capacity": capacity}
    if given["availability"] != given["was"]:
        wanted["availability"] = given["availability"]
    return wanted


def _page(email: str, role: str, errors: dict[str, str], refused: dict[str, str] | None = None) -> str:
    """Renders the page. `refused`: the `member_id` and `capacity` of a refused change, and why."""
    people = members.of_workspace(workspace_id())
    return render_template(
        "members/index.html",
        members=people,
        loads=conversation_counts.of_members(workspace_id(), [person.member_id for person in people]),
        refused=refused or {},
        most_capacity=member_changes.MOST_CAPACITY,
        invitations=links.invitations(workspace_id()) if viewer().may("members.manage") else [],
        can_be_sent=emails.can_be_sent(),
        roles=[(each, each) for each in ROLES],
        opens=OPENS,
        email=email,
        role=role,
        errors=errors,
    )


def _link(made: Made) -> str:
    return render_template("members/link.html", email=made.account.email, address=made.address)


def _done(said: str, category: str = "good") -> Response:
    return to("member_pages.index", said, category)
