"""Side panes: information about the contact beside a conversation, which can be changed there."""

from __future__ import annotations

from typing import Any

from app.domain.contacts import contact_names
from app.domain.lifecycle import merges
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.runs import Run
from app.web.access import workspace_id
from app.web.contacts import contact_forms
from app.web.inbox import views

MOST_OTHERS, MOST_RUNS, MOST_SUGGESTED = 5, 5, 5
# How many custom fields the pane shows. The contact's page shows all of them.
MOST_SHOWN = 12
_REASONS = {"same_phone": "has the same phone number", "taken": "has what you have typed"}


def shown(conversation: Conversation, contact: Contact | None, **asked: Any) -> dict[str, Any]:
    """Returns the pane's template variables.

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
