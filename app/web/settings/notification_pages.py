"""Notifications: the bell, the list, preferences, and unsubscribing from e-mail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from flask import Blueprint, flash, render_template, request
from werkzeug.wrappers import Response

from app import config
from app.domain.people import accounts, emails, notifications
from app.domain.people.notifications import Bell
from app.errors import NotFound
from app.lib import ids
from app.models.conversations import Conversation
from app.models.members import Member
from app.models.notifications import Notification
from app.web import lists
from app.web.access import page, public, viewer, workspace_id
from app.web.inbox import views
from app.web.inbox.views import Row
from app.web.redirects import to

blueprint = Blueprint("notification_pages", __name__)
W = "/workspaces/<workspace>/notifications"
# How many notifications the bell shows, and how many it looks through for that.
MOST_SHOWN, MOST_LOOKED_AT = 8, 50
_SENTENCES = {
    "assigned": "The conversation with {} was assigned to you",
    "contact_wrote": "{} has written",
    "mentioned": "You were mentioned in a note on the conversation with {}",
    "woken": "The conversation with {} is awake",
    "new_conversation": "{} has written, and nobody has the conversation",
}


@blueprint.get(W)
@page("notifications.see")
def index() -> str:
    """Lists the notifications, newest first, and highlights unread ones."""
    member = _member()
    kinds = notifications.wanted_by(member, "page") if member else notifications.NAMES
    found = lists.sliced(partial(Notification.newest, workspace_id(), member.id if member else None, kinds=kinds))
    return render_template(
        "notifications/index.html",
        page=found,
        entries=_entries_of(found.rows),
        read_until=member.read_until if member else None,
    )


@blueprint.get(f"{W}/bell")
@page("notifications.see")
def show_bell() -> str:
    """Renders the bell: the newest unread notifications, and notifications for the browser to show."""
    member = _member()
    if member is None:
        return render_template("notifications/bell.html")
    wanted = {way: notifications.wanted_by(member, way) for way in ("page", "browser")}
    kinds = {*wanted["page"], *wanted["browser"]}
    found = Notification.newest(workspace_id(), member.id, None, MOST_LOOKED_AT, kinds=kinds, since=member.read_until)
    # A kind that is not in `kinds` is about the workspace. Members cannot turn it off on the page.
    shown = [each for each in found if each.kind not in kinds or each.kind in wanted["page"]][:MOST_SHOWN]
    told = [each for each in found if each.kind in wanted["browser"]][:MOST_SHOWN]
    entries = {each.notification.id: each for each in _entries_of({each.id: each for each in shown + told}.values())}
    return render_template(
        "notifications/bell.html",
        entries=[entries[each.id] for each in shown],
        told=[entries[each.id] for each in told],
        shows_texts=member.shows_texts,
    )


@blueprint.post(f"{W}/read")
@page("notifications.see")
def mark_read() -> Response:
    """Marks notifications as read, up to the newest that the page showed. Redirects to the list."""
    until = request.form.get("until", "")
    if (member_id := viewer().member_id) is not None and ids.is_id(until, "ntf"):
        notifications.mark_read(member_id, until)
    return to("notification_pages.index")


@blueprint.get(f"{W}/choices")
@page("notifications.see")
def show_choices() -> str:
    """Shows the preferences: which kinds notify the viewer on the page, in the browser, by e-mail."""
    member = _member()
    return render_template(
        "notifications/choices.html",
        member=member,
        kinds=notifications.NOTIFICATION_KINDS,
        chosen=notifications.chosen_by(member) if member else frozenset(),
        can_be_sent=emails.can_be_sent(),
        wants_email=accounts.get(viewer().signed.account_id).wants_email,
    )


@blueprint.post(f"{W}/choices")
@page("notifications.see")
def choose() -> Response:
    """Stores the viewer's preferences, and redirects to them. Safe to repeat."""
    if (member_id := viewer().member_id) is not None:
        chosen, shows_texts = request.form.getlist("chosen"), request.form.get("shows_texts") == "true"
        notifications.choose(member_id, chosen, shows_texts=shows_texts)
        flash("Your choices were saved.", "good")
    return to("notification_pages.show_choices")


@blueprint.get("/unsubscribe/<token>")
@public
def ask(token: str) -> str:
    """Asks whether to unsubscribe: opening the link is not enough, as mail servers open links, too."""
    _account_of(token)
    return render_template("notifications/unsubscribe.html", is_done=False)


@blueprint.post("/unsubscribe/<token>")
@public
def unsubscribe(token: str) -> str:
    """Ends notifications by e-mail. Safe to repeat. Mail programs also post here (RFC 8058)."""
    notifications.want_email(_account_of(token), wanted=False)
    return render_template("notifications/unsubscribe.html", is_done=True)


@blueprint.app_template_global()
def bell_of_viewer() -> Bell | None:
    """Returns the viewer's bell in this workspace, in one statement; None if they are not a member."""
    member_id = viewer().member_id
    return notifications.bell(member_id) if member_id else None


@blueprint.app_template_global()
def live_address() -> str:
    """Returns the address of this workspace's live updates."""
    return f"{config.settings().realtime_url}/live/workspace?workspace={workspace_id()}"


def _member() -> Member | None:
    member_id = viewer().member_id
    found: Member | None = Member.get_by_id(member_id) if member_id else None
    return found


def _account_of(token: str) -> str:
    account_id = notifications.account_of(token)
    if account_id is None:
        raise NotFound("This link is not valid. Sign in, and choose in your account which e-mail you get.")
    return account_id


@dataclass(frozen=True, slots=True)
class _Entry:
    """A notification. `row`: its conversation, if it still exists."""

    notification: Notification
    row: Row | None

    @property
    def path(self) -> str:
        """The path of the page about the subject of the notification."""
        return notifications.path(self.notification)

    @property
    def plainly(self) -> str:
        """A sentence that says what happened, without names and texts."""
        one = self.notification
        return notifications.headline(one.kind, one.detail, one.amount)

    @property
    def around_name(self) -> list[str]:
        """The text before and after the contact's name."""
        return _SENTENCES[self.notification.kind].split("{}")

    @property
    def sentence(self) -> str:
        """A sentence that says what happened, with the contact's name if the conversation still exists."""
        return self.row.name.join(self.around_name) if self.row else self.plainly


def _entries_of(found: Iterable[Notification]) -> list[_Entry]:
    """Returns the notifications as entries, in their order, in four statements."""
    told = list(found)
    wanted = {each.conversation_id for each in told if each.conversation_id is not None}
    known = Conversation.select().where(Conversation.id.in_(wanted)) if wanted else ()
    rows = {row.conversation.id: row for row in views.rows_of(list(known))}
    return [_Entry(each, rows.get(str(each.conversation_id))) for each in told]
