"""Saved replies: listing, creating (with a preview), changing and deleting them."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.bodies.saved_replies import SavedReplyCreate
from app.domain.channels import media
from app.domain.macros import saved_replies
from app.errors import Conflict, Invalid
from app.lib import ids
from app.models.saved_replies import SavedReply
from app.web import lists, uploads, writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, checked, status_of
from app.web.macros import saved_reply_forms
from app.web.macros.saved_reply_forms import Given, Preview
from app.web.redirects import to

blueprint = Blueprint("saved_reply_pages", __name__, url_prefix="/workspaces/<workspace>/saved-replies")


@blueprint.get("")
@page("macros.see")
def index() -> str:
    """Lists the saved replies, newest first; with `q`, only replies that match."""
    given = lists.filters("q")
    found = lists.sliced(partial(SavedReply.newest, workspace_id(), given.get("q")))
    return render_template("saved_replies/index.html", page=found, given=given)


@blueprint.get("/new", endpoint="new")
@blueprint.get("/<saved_reply_id>", endpoint="edit")
@page("macros.manage")
def edit(saved_reply_id: str | None = None) -> str:
    """Shows the form of the saved reply, or of a new one."""
    if saved_reply_id is None:
        return _form(None, Given())
    reply = SavedReply.find(workspace_id(), saved_reply_id)
    return _form(reply, Given(reply.shortcut, reply.text, [each["id"] for each in reply.attachments]))


@blueprint.post("/new", endpoint="create")
@blueprint.post("/<saved_reply_id>", endpoint="update")
@page("macros.manage", most_bytes=uploads.MOST_FORM_BYTES)
def save(saved_reply_id: str | None = None) -> Answer:
    """Saves or creates the saved reply and redirects to the list, or shows a preview or a refusal."""
    reply = SavedReply.find(workspace_id(), saved_reply_id) if saved_reply_id else None
    given = saved_reply_forms.given()
    if request.form.get("do") == "preview":
        shown = saved_reply_forms.preview_of(given)
        return _form(reply, given, shown.errors, shown)
    try:
        body = checked(SavedReplyCreate(), saved_reply_forms.body_of(given))
        saved_replies.check(workspace_id(), body)
        if new_files := uploads.stored(uploads.given("files")):
            given.kept += new_files  # the form keeps them if the write is refused
            body = checked(SavedReplyCreate(), saved_reply_forms.body_of(given))
        kind = "saved_replies.update" if reply else "saved_replies.create"
        job = writes.submit(kind, body, reply.id if reply else ids.new("srp"))
    except (Invalid, Conflict) as error:
        return _form(reply, given, saved_reply_forms.errors_of(error)), status_of(error)
    return to("saved_reply_pages.index", f"/{body['shortcut']} is saved." if job.is_finished else None)


@blueprint.post("/<saved_reply_id>/delete")
@page("macros.manage")
def delete(saved_reply_id: str) -> Response:
    """Deletes the saved reply, and redirects to the list. A Conflict is shown there."""
    reply = SavedReply.find(workspace_id(), saved_reply_id)
    writes.tell(f"The saved reply /{reply.shortcut} was deleted.", "saved_replies.delete", {}, reply.id)
    return to("saved_reply_pages.index")


def _form(
    reply: SavedReply | None, given: Given, errors: dict[str, str] | None = None, preview: Preview | None = None
) -> str:
    return render_template(
        "saved_replies/form.html",
        reply=reply,
        given=given,
        errors=errors or {},
        files=uploads.named(given.kept),
        people=saved_reply_forms.contacts_to_preview(given),
        names=saved_reply_forms.NAMES,
        preview=preview or (saved_reply_forms.preview_of(given) if given.text and not errors else None),
        most_files=media.MOST_FILES,
        longest_text=saved_replies.LONGEST_TEXT,
        longest_shortcut=saved_replies.LONGEST_SHORTCUT,
    )
