"""Forms beside a conversation: its contact's fields, tags, merges and runs; also the timeline.

Forms redirect to the conversation, or show it again if they are refused. Scripts get the pane.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, flash, jsonify, make_response, redirect, render_template, request
from werkzeug.wrappers import Response

from app.domain.automations import runs
from app.domain.bodies.contacts import ContactPatch, MergeBody, TagBody
from app.domain.contacts import contacts
from app.domain.insight import timelines
from app.errors import Conflict, Fault, Invalid
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.jobs import Job
from app.web import writes
from app.web.access import page, workspace_id
from app.web.contacts import contact_forms
from app.web.forms import Answer, checked, errors_of, is_script, sentence_of, status_of, typed
from app.web.inbox import inbox_pages, views

blueprint = Blueprint("side_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>/contact")

EDIT = "contacts.edit"
MOST_HAPPENED = 20
# The kinds of timeline entries that are about the contact. All others are technical.
_TELLING = ("event", "run")
_CHANGES: Mapping[str, tuple[str, str]] = {
    "resume": ("runs.resume", "The run continues."),
    "cancel": ("runs.cancel", "The run is cancelled."),
}


@blueprint.post("")
@page(EDIT)
def change(conversation_id: str) -> Answer:
    """Saves the fields that differ, unless somebody else has changed the contact meanwhile."""
    conversation, contact = _found(conversation_id)
    given = contact_forms.sent(contact)
    try:
        fields = checked(ContactPatch(), contact_forms.change(given, contact))
        check = partial(contact_forms.refuse_stale, given, contact)
        job = writes.submit("contacts.update", fields, contact.id, check)
    except (Invalid, Conflict) as error:
        other_id = error.facts.get("conflicting_contact_id") if isinstance(error, Conflict) else None
        asked = {"given": contact_forms.again(given, contact, error), "faults": errors_of(error), "other_id": other_id}
        return _refused(conversation, error, **asked)
    return _done(conversation, job, "The contact is changed.")


@blueprint.post("/tags", endpoint="add_tag", defaults={"kind": "contacts.add_tag"})
@blueprint.post("/tags/remove", endpoint="remove_tag", defaults={"kind": "contacts.remove_tag"})
@page(EDIT)
def change_tags(conversation_id: str, kind: str) -> Answer:
    """Adds or removes a tag of the contact, if needed."""
    conversation, contact = _found(conversation_id)
    given = typed("name")
    try:
        job = writes.submit(kind, checked(TagBody(), given), contact.id)
    except (Invalid, Conflict) as error:
        return _refused(conversation, error, tag=given["name"], tag_error=sentence_of(error))
    return _done(conversation, job, "The tags are changed.")


@blueprint.get("/tags")
@page(EDIT)
def show_tags(conversation_id: str) -> Response:
    """Returns tags that were used lately in the workspace, as JSON, to suggest them."""
    Conversation.find(workspace_id(), conversation_id)
    return jsonify(Contact.recent_tags(workspace_id()))


@blueprint.post("/merge")
@page(EDIT)
def merge(conversation_id: str) -> Answer:
    """Merges the contact `contact_id` into the conversation's. If refused, the pane shows the reason."""
    conversation, contact = _found(conversation_id)
    try:
        body = checked(MergeBody(), typed("contact_id"))
        job = writes.submit("contacts.merge", body, contact.id)
    except (Invalid, Conflict) as error:
        return _refused(conversation, error, refusal=sentence_of(error))
    return _done(conversation, job, "They are one contact now.")


@blueprint.post("/runs/<run_id>")
@page("runs.manage")
def change_run(conversation_id: str, run_id: str) -> Answer:
    """Resumes or cancels a run of the contact, depending on the button."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    run = runs.find(workspace_id(), run_id)
    kind, done = _CHANGES.get(typed("do")["do"], ("", ""))
    try:
        if not kind or run.contact_id != conversation.contact_id:
            raise Invalid(Fault("/do", "There is no such change."))
        job = writes.submit(kind, {"contact_id": run.contact_id}, run.id)
    except (Invalid, Conflict) as error:
        return _refused(conversation, error, refusal=sentence_of(error))
    return _done(conversation, job, done)


@blueprint.get("/timeline")
@page("dashboard.see")
def show_timeline(conversation_id: str) -> str:
    """Renders the newest entries of the contact's timeline, for the script to insert."""
    conversation = Conversation.find(workspace_id(), conversation_id)
    found = timelines.newest(workspace_id(), conversation.contact_id, None, MOST_HAPPENED)
    return render_template(
        "inbox/timeline.html",
        telling=[each for each in found if each.what in _TELLING],
        technical=[each for each in found if each.what not in _TELLING],
        labels=timelines.labels(workspace_id(), found),
    )


def _found(conversation_id: str) -> tuple[Conversation, Contact]:
    conversation = Conversation.find(workspace_id(), conversation_id)
    return conversation, contacts.find(workspace_id(), conversation.contact_id)


def _done(conversation: Conversation, job: Job, said: str) -> Answer:
    if is_script():
        return _pane(conversation, said if job.is_finished else writes.STILL_QUEUED)
    if job.is_finished:
        flash(said, "good")
    here = views.asked_for().address("inbox_pages.show", conversation_id=conversation.id, pane=request.args.get("pane"))
    return redirect(here, 303)


def _refused(conversation: Conversation, error: Invalid | Conflict, **asked: Any) -> Answer:
    if not is_script():
        return inbox_pages.page_of(conversation, side=asked), status_of(error)
    return make_response(_pane(conversation, sentence_of(error), **asked), status_of(error))


def _pane(conversation: Conversation, said: str, **asked: Any) -> Response:
    """Returns the current pane for the script, and the message `said`."""
    contact = Contact.one(workspace_id(), conversation.contact_id)
    shown = inbox_pages.side_of(conversation, contact, **asked)
    return jsonify(said=said, pane=render_template("inbox/side.html", view=views.asked_for(), **shown))
