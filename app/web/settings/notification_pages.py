"""Notifications: the bell, the list, and unsubscribing from e-mail about them."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.people import notifications
from app.errors import NotFound
from app.lib import ids
from app.models.members import Member
from app.models.notifications import Notification
from app.web import lists
from app.web.access import page, public, viewer, workspace_id
from app.web.redirects import to

blueprint = Blueprint("notification_pages", __name__)
W = "/workspaces/<workspace>/notifications"


@blueprint.get(W)
@page("notifications.see")
def index() -> str:
    """The notifications, newest first, with those that the viewer has not read marked."""
    membership = viewer().membership
    member_id = membership.member_id if membership else None
    return render_template(
        "notifications/index.html",
        page=lists.sliced(partial(Notification.newest, workspace_id(), member_id)),
        read_until=Member.get_by_id(membership.member_id).read_until if membership else None,
        headline=notifications.headline,
        path=notifications.path,
    )


@blueprint.post(f"{W}/read")
@page("notifications.see")
def mark_read() -> Response:
    """Marks all read that the viewer has seen: up to the newest of the page that was shown."""
    until = request.form.get("until", "")
    if (membership := viewer().membership) is not None and ids.is_id(until, "ntf"):
        notifications.mark_read(membership.member_id, until)
    return to("notification_pages.index")


@blueprint.get("/unsubscribe/<token>")
@public
def ask(token: str) -> str:
    """Asks whether to unsubscribe: mail servers open links, too."""
    _account_of(token)
    return render_template("notifications/unsubscribe.html", is_done=False)


@blueprint.post("/unsubscribe/<token>")
@public
def unsubscribe(token: str) -> str:
    """Ends e-mail about notifications. Safe to repeat. Mail programs post here by themselves (RFC 8058)."""
    notifications.want_email(_account_of(token), wanted=False)
    return render_template("notifications/unsubscribe.html", is_done=True)


@blueprint.app_template_global()
def unread_notifications() -> int:
    """How many notifications of this workspace the viewer has not read; one statement."""
    membership = viewer().membership
    return notifications.unread(membership.member_id) if membership else 0


def _account_of(token: str) -> str:
    account_id = notifications.account_of(token)
    if account_id is None:
        raise NotFound("This link is not valid. Sign in, and choose in your account which e-mail you get.")
    return account_id
