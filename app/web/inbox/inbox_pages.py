"""The inbox: a list of conversations, the open one, and its contact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, jsonify, render_template, request, url_for
from werkzeug.wrappers import Response

from app import config
from app.channels.kinds import CHANNEL_KINDS
from app.domain.channels import media
from app.domain.contacts import contact_names
from app.domain.conversations import (
    conversation_changes,
    conversation_counts,
    messages,
    notes,
    scheduled_messages,
    sending_checks,
)
from app.domain.inbox import saved_views
from app.domain.lifecycle import merges
from app.domain.people import conversation_notifications, members, message_access
from app.lib import clock
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.drafts import Draft
from app.models.macros import Macro
from app.models.runs import Run
from app.models.saved_replies import SavedReply
from app.web.access import page, viewer, workspace_id
from app.web.contacts import contact_forms
from app.web.formats import words
from app.web.inbox import snooze_times, threads, views
from app.web.inbox.saved_view_forms import may_change

blueprint = Blueprint("inbox_pages", __name__, url_prefix="/workspaces/<workspace>/inbox")

MOST_OTHERS, MOST_RUNS, MOST_SUGGESTED = 5, 5, 5
# How many custom fields the pane shows. The contact's page shows all of them.
MOST_SHOWN = 12
_REASONS = {"same_phone": "has the same phone number", "taken": "has what you have typed"}
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
    the conversation, see `side_of`.
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


def side_of(conversation: Conversation, contact: Contact | None, **asked: Any) -> dict[str, Any]:
    """Returns the template variables of the pane about the contact.

    `asked`: the content of a refused form: the `given` fields with their `faults`, and `other_id`, the contact that has
    one of the identifiers; a `tag` with its `tag_error`; or the `refusal` of anything else.
    """
    others = Conversation.of_contact(workspace_id(), conversation.contact_id, MOST_OTHERS + 1)
    return {
        "conversation": conversation,
        "contact": contact,
        "name": contact_names.name_of(contact) if contact else "Deleted contact",
        "others": views.rows_of([each for each in others if each.id != conversation.id][:MOST_OTHERS]),
        "runs": _runs(conversation),
        "most_fields": MOST_SHOWN,
        "has_more_fields": contact is not None and len(contact.custom_fields) > MOST_SHOWN,
        "kinds": contact_forms.KINDS,
        "suggested": _suggested(contact, asked.get("other_id")) if contact else [],
        "given": contact_forms.of_contact(contact, MOST_SHOWN, 1) if contact else {},
        "faults": {},
        "is_edited": "given" in asked,
        **asked,
    }


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
        **side_of(conversation, contact, **(side or {})),
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


def _suggested(contact: Contact, other_id: str | None) -> list[tuple[str, str, str]]:
    """Returns (identifier, name, reason) of contacts that may be the same person."""
    found = dict(merges.suggested(contact, MOST_SUGGESTED))
    if other_id and other_id != contact.id:
        found = {other_id: "taken", **found}
    names = contact_names.names_of(workspace_id(), list(found))
    return [(each, names[each], _REASONS.get(reason, reason)) for each, reason in found.items() if each in names]


def _runs(conversation: Conversation) -> list[tuple[Run, str]]:
    """Returns the contact's latest runs, with the names of their automations."""
    found = Run.newest(workspace_id(), {"contact_id": conversation.contact_id}, None, MOST_RUNS)
    ids = {run.automation_id for run in found}
    named = Automation.select(Automation.id, Automation.name).where(Automation.id.in_(ids)) if ids else ()
    names = {each.id: each.name for each in named}
    return [(run, names.get(run.automation_id, "a deleted automation")) for run in found]
