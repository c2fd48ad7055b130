"""Notifications: the bell, the list, what a member wants of them, and unsubscribing from e-mail about them."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, flash, render_template, request
from werkzeug.wrappers import Response

from app import config
from app.domain.people import accounts, emails, notification_kinds, notifications
from app.domain.people.notifications import Bell
from app.errors import NotFound
from app.lib import ids
from app.models.members import Member
from app.models.notifications import Notification
from app.web import lists
from app.web.access import page, public, viewer, workspace_id
from app.web.redirects import to
from app.web.settings.notification_entries import entries_of

blueprint = Blueprint("notification_pages", __name__)
W = "/workspaces/<workspace>/notifications"
# What the bell's own list shows, of so many that are looked through.
MOST_SHOWN, MOST_LOOKED_AT = 8, 50


@blueprint.get(W)
@page("notifications.see")
def index() -> str:
    """The notifications, newest first, with those that the viewer has not read marked."""
    member = _member()
    kinds = notification_kinds.wanted_by(member, "page") if member else notification_kinds.NAMES
    found = lists.sliced(partial(Notification.newest, workspace_id(), member.id if member else None, kinds=kinds))
    return render_template(
        "notifications/index.html",
        page=found,
        entries=entries_of(found.rows),
        read_until=member.read_until if member else None,
    )


@blueprint.get(f"{W}/bell")
@page("notifications.see")
def show_bell() -> str:
    """The bell with the latest that is new, and what the script shows as notifications of the browser."""
    member = _member()
    if member is None:
        return render_template("notifications/bell.html")
    wanted = {way: notification_kinds.wanted_by(member, way) for way in ("page", "browser")}
    kinds = {*wanted["page"], *wanted["browser"]}
    found = Notification.newest(workspace_id(), member.id, None, MOST_LOOKED_AT, kinds=kinds, since=member.read_until)
    # What concerns the workspace is in the page alone.
    shown = [each for each in found if each.kind not in kinds or each.kind in wanted["page"]][:MOST_SHOWN]
    told = [each for each in found if each.kind in wanted["browser"]][:MOST_SHOWN]
    entries = {each.notification.id: each for each in entries_of({each.id: each for each in shown + told}.values())}
    return render_template(
        "notifications/bell.html",
        entries=[entries[each.id] for each in shown],
        told=[entries[each.id] for each in told],
        shows_texts=member.shows_texts,
    )


@blueprint.post(f"{W}/read")
@page("notifications.see")
def mark_read() -> Response:
    """Marks all read that the viewer has seen: up to the newest of the page that was shown."""
    until = request.form.get("until", "")
    if (membership := viewer().membership) is not None and ids.is_id(until, "ntf"):
        notifications.mark_read(membership.member_id, until)
    return to("notification_pages.index")


@blueprint.get(f"{W}/choices")
@page("notifications.see")
def show_choices() -> str:
    """What the viewer wants to know of, and where."""
    member = _member()
    return render_template(
        "notifications/choices.html",
        member=member,
        kinds=notification_kinds.KINDS,
        chosen=notification_kinds.chosen_by(member) if member else frozenset(),
        can_be_sent=emails.can_be_sent(),
        wants_email=accounts.get(viewer().signed.account_id).wants_email,
    )


@blueprint.post(f"{W}/choices")
@page("notifications.see")
def choose() -> Response:
    """Stores what the viewer wants. Safe to repeat."""
    if (membership := viewer().membership) is not None:
        chosen, shows_texts = request.form.getlist("chosen"), request.form.get("shows_texts") == "true"
        notification_kinds.choose(membership.member_id, chosen, shows_texts=shows_texts)
        flash("Your choices were saved.", "good")
    return to("notification_pages.show_choices")


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
def bell_of_viewer() -> Bell | None:
    """The bell of this workspace for the viewer, who is a member; one statement."""
    membership = viewer().membership
    return notifications.bell(membership.member_id) if membership else None


@blueprint.app_template_global()
def live_address() -> str:
    """Where the live updates of this workspace come from."""
    return f"{config.settings().realtime_url}/live/workspace?workspace={workspace_id()}"


def _member() -> Member | None:
    membership = viewer().membership
    found: Member | None = Member.get_by_id(membership.member_id) if membership else None
    return found


def _account_of(token: str) -> str:
    account_id = notifications.account_of(token)
    if account_id is None:
        raise NotFound("This link is not valid. Sign in, and choose in your account which e-mail you get.")
    return account_id
