"""The inbox: a list of conversations, the open one, and its contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, jsonify, render_template, request, url_for
from werkzeug.wrappers import Response

from app import config
from app.channels.kinds import CHANNEL_KINDS
from app.domain.channels import media
from app.domain.conversations import (
    conversation_changes,
    conversation_counts,
    messages,
    notes,
    scheduled_messages,
    sending_checks,
)
from app.domain.inbox import saved_views
from app.domain.people import conversation_notifications, members, message_access
from app.lib import clock
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.drafts import Draft
from app.models.macros import Macro
from app.models.saved_replies import SavedReply
from app.web.access import page, viewer, workspace_id
from app.web.formats import words
from app.web.inbox import side_panes, snooze_times, threads, views
from app.web.inbox.saved_view_forms import may_change

blueprint = Blueprint("inbox_pages", __name__, url_prefix="/workspaces/<workspace>/inbox")

# The most macros, and the most saved replies, that the composer offers: the newest.
MOST_MACROS, MOST_REPLIES = 100, 100


@blueprint.get("")
@page(message_access.SEE)
def index() -> str:
    """Shows the list that the address selects, with no conversation open."""
    return page_of(None)


@blueprint.get("/counts")
@page(message_access.SEE)
def show_counts() -> Response:
    """Returns the number of conversations in each view, as JSON."""
    return jsonify(_counts())


@blueprint.get("/<conversation_id>")
@page(message_access.SEE)
def show(conversation_id: str) -> str:
    """Shows a conversation beside the list. Marks the member's notifications about it as read."""
    return page_of(_looked_at(conversation_id))


@blueprint.get("/<conversation_id>/panes")
@page(message_access.SEE)
def show_panes(conversation_id: str) -> str:
    """Like `show`, without the list, which the script keeps."""
    shown = _shown_of(_looked_at(conversation_id))
    return render_template("inbox/panes.html", view=views.asked_for(), counts=_counts(), people=people(), **shown)


@blueprint.get("/<conversation_id>/row")
@page(message_access.SEE)
def show_row(conversation_id: str) -> str:
    """Renders a conversation as a row, for the script to add to a list where it now belongs."""
    [row] = views.rows_of([Conversation.find(workspace_id(), conversation_id)])
    begun = _begun_in([conversation_id])
    return render_template("inbox/rows.html", rows=[row], view=views.asked_for(), people=people(), begun=begun)


def people() -> dict[str, str]:
    """Returns the names of the members by identifier: the part of the e-mail address before the @."""
    return {person.member_id: person.email.partition("@")[0] for person in members.of_workspace(workspace_id())}


def later(conversation: Conversation) -> list[dict[str, Any]]:
    """Returns the conversation's scheduled messages, as in the API, the earliest first."""
    if not conversation.scheduled:
        return []
    of_it = {"conversation_id": conversation.id}
    found = Message.scheduled(of_it, None, None, scheduled_messages.MOST_OF_CONVERSATION)
    return [messages.represent(message) for message in found]


def page_of(conversation: Conversation | None, **typed: Any) -> str:
    """Renders the inbox.

    `typed`: the content of a refused form: `typed` fields, `uploads`, `errors`, `missing`; and `side`: the form beside
    the conversation, see `side_panes.shown`.
    """
    view, counts = views.asked_for(), _counts()
    shown = view.page()
    channels = list(Channel.in_workspace(workspace_id()).order_by(Channel.id))
    return render_template(
        "inbox/index.html",
        view=view,
        labels_of_views={name: views.LABELS[name] for name in views.names()},
        saved=_saved(view),
        counts=counts,
        # The change of the whole list is offered only if it has several pages: otherwise, ticking all rows is enough.
        whole=view.number(counts) if shown.next_address or shown.first_address else None,
        channels=channels,
        channel_kinds={each.id: words(each.kind) for each in channels},
        page=shown,
        begun=_begun_in([row.conversation.id for row in shown.rows]),
        people=people(),
        pane=request.args.get("pane"),
        live_url=config.settings().realtime_url,
        **(_shown_of(conversation, **typed) if conversation else {"conversation": None}),
    )


def _looked_at(conversation_id: str) -> Conversation:
    conversation = Conversation.find(workspace_id(), conversation_id)
    if (member_id := viewer().member_id) is not None:
        conversation_notifications.read(conversation.id, member_id)
    return conversation


def _shown_of(conversation: Conversation, side: Mapping[str, Any] | None = None, **typed: Any) -> dict[str, Any]:
    contact = Contact.one(workspace_id(), conversation.contact_id)
    channel = Channel.get_by_id(conversation.channel_id)
    macros = Macro.newest(workspace_id(), None, None, MOST_MACROS)
    replies = SavedReply.newest(workspace_id(), None, None, MOST_REPLIES)
    member_id = viewer().member_id
    return {
        **side_panes.shown(conversation, contact, **(side or {})),
        "channel": channel,
        "is_window_closed": CHANNEL_KINDS[channel.kind].window is not None
        and not conversation.is_window_open(clock.now()),
        "may_answer": sending_checks.is_answer({"type": "member"}, conversation.asked_at, clock.now()),
        "thread": threads.read(conversation, request.args.get("before")),
        "snoozes": snooze_times.CHOICES,
        "most_characters": messages.MOST_CHARACTERS,
        "most_note": notes.MOST_CHARACTERS,
        "most_labels": conversation_changes.MOST_LABELS,
        "most_files": CHANNEL_KINDS[channel.kind].most_files,
        "most_bytes": media.MOST_BYTES,
        "draft": Draft.of(member_id, conversation.id) if member_id else None,
        "macros": sorted(macros, key=lambda macro: macro.name.casefold()),
        "saved_replies": sorted(replies, key=lambda reply: reply.folded),
        "later": later(conversation),
        "later_choices": ("in 1 hour", "tomorrow 9:00", "monday 9:00"),
        "typed": {},
        "errors": {},
        "uploads": [],
        **typed,
    }


def _begun_in(conversation_ids: list[str]) -> set[str]:
    """Returns the conversations in which the viewer has a draft."""
    member_id = viewer().member_id
    return Draft.begun_in(member_id, conversation_ids) if member_id else set()


def _saved(view: views.View) -> list[dict[str, Any]]:
    """Returns the viewer's saved views, with their addresses, and whether they are open or editable."""
    found = saved_views.seen_by(workspace_id(), viewer().member_id)
    here = {"view": view.name, **view.chosen}
    return [
        {
            "row": each,
            "address": url_for("inbox_pages.index", workspace=workspace_id(), **each.filters),
            "is_here": each.filters == here,
            "may_change": may_change(each),
        }
        for each in found
    ]


def _counts() -> dict[str, Any]:
    return conversation_counts.of_views(workspace_id(), viewer().member_id)
