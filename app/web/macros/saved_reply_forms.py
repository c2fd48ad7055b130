"""The form of a saved reply: its fields and files, and a preview for a contact."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from app import bounds
from app.domain.bodies.pointers import refuse_bad_text
from app.domain.contacts import contact_names
from app.domain.macros import saved_replies
from app.domain.macros.saved_replies import Rendering
from app.errors import Conflict, Fault, Invalid, Overloaded
from app.lib import ids
from app.models.contacts import Contact
from app.web import forms, uploads
from app.web.access import viewer, workspace_id
from app.web.forms import typed

# How many contacts a preview offers: the newest.
MOST_CONTACTS = 20
# The placeholders that a text can contain, such as `{{ contact.first_name }}`.
NAMES = [f"{{{{ {noun}.{name} }}}}" for noun, names in saved_replies.NAMES.items() for name in names or ()]


@dataclass
class Given:
    """The form's fields. `kept`: the files to keep; `contact_id`: the contact of the preview."""

    shortcut: str = ""
    text: str = ""
    kept: list[str] = field(default_factory=list)
    contact_id: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """The rendered text, and the names that printed nothing. `errors`: why it cannot be rendered."""

    rendered: str = ""
    missing: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


def given() -> Given:
    """Reads the form. The shortcut may be typed with its slash."""
    said = typed("shortcut", "text", "contact_id")
    return Given(said["shortcut"].strip().removeprefix("/"), said["text"], uploads.kept(), said["contact_id"])


def body_of(given: Given) -> dict[str, Any]:
    """Returns the saved reply as in the API. Raises Invalid for empty fields."""
    needed = (("/shortcut", given.shortcut, "Give a shortcut."), ("/text", given.text.strip(), "Write the text."))
    if faults := [Fault(pointer, sentence) for pointer, value, sentence in needed if not value]:
        raise Invalid(*faults)
    attachments = [{"upload_id": upload_id} for upload_id in given.kept]
    return {"shortcut": given.shortcut, "text": given.text, "attachments": attachments}


def errors_of(error: Invalid | Conflict) -> dict[str, str]:
    """Returns the error messages by field. For a shortcut that is taken, adds `other_id`."""
    if isinstance(error, Conflict) and (other_id := error.facts.get("conflicting_saved_reply_id")):
        return {"shortcut": error.detail, "other_id": other_id}
    found = forms.errors_of(error)
    if said := found.pop("attachments", None):
        found["files"] = said
    return found


def contacts_to_preview(given: Given) -> list[tuple[str, str]]:
    """Returns the (identifier, name) of contacts for the preview, the chosen one included."""
    found = Contact.newest(workspace_id(), {}, None, MOST_CONTACTS)
    if given.contact_id not in {each.id for each in found} and (chosen := _chosen(given)):
        found = [chosen, *found]
    return [(each.id, contact_names.name_of(each)) for each in found]


def preview_of(given: Given) -> Preview:
    """Renders the text as the viewer would send it to the chosen or newest contact.

    In a workspace without contacts, returns it unchanged.
    """
    try:
        refuse_bad_text(given.text)
        if faults := list(saved_replies.text_faults(given.text, "/text")):
            raise Invalid(*faults)
        contact = _chosen(given) or next(iter(Contact.newest(workspace_id(), {}, None, 1)), None)
        if contact is None:
            return Preview(given.text)
        with bounds.alone(contact.workspace_id) if "{" in given.text else nullcontext():
            rendering = Rendering(contact, viewer().member_id)
            return Preview(rendering.render(given.text), rendering.missing)
    except Invalid as error:
        return Preview(errors={"text": error.faults[0].detail})
    except (Conflict, Overloaded) as error:
        return Preview(errors={"text": error.detail})


def _chosen(given: Given) -> Contact | None:
    return Contact.one(workspace_id(), given.contact_id) if ids.is_id(given.contact_id, "con") else None
