"""Applies macros in a conversation: one click runs all their actions."""

from __future__ import annotations

from flask import Blueprint
from werkzeug.wrappers import Response

from app.errors import Conflict, Fault, Invalid, NotFound
from app.models.conversations import Conversation
from app.models.macros import Macro
from app.web import writes
from app.web.access import page, workspace_id
from app.web.forms import typed
from app.web.inbox.form_answers import told, turned_down

blueprint = Blueprint("macro_forms", __name__, url_prefix="/workspaces/<workspace>/inbox/<conversation_id>")


@blueprint.post("/macro")
@page("conversations.answer")
def apply(conversation_id: str) -> Response:
    """Runs all actions of the macro, or none, and redirects to the conversation.

    The conversation shows the reason of a refusal. Responds to scripts with JSON.
    """
    conversation = Conversation.find(workspace_id(), conversation_id)
    try:
        macro = _chosen()
        payload = {"macro_id": macro.id, "contact_id": conversation.contact_id}
        job = writes.submit("macros.apply", payload, conversation.id)
    except (Invalid, Conflict) as error:
        return turned_down(conversation, error, "Nothing was done. ")
    return told(conversation, f"{macro.name} is applied." if job.is_finished else "")


def _chosen() -> Macro:
    """Returns the macro of the pressed button. Raises Invalid."""
    try:
        return Macro.find(workspace_id(), typed("macro_id")["macro_id"])
    except NotFound as error:
        raise Invalid(Fault("/macro_id", "There is no such macro. It may have been deleted.")) from error
