"""`add_tag` and `remove_tag`: change the tags of the contact."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.domain.automations.steps import templated_values
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepKind, Words
from app.domain.contacts import contacts
from app.domain.triggers.plain_words import quoted
from app.lib import normalization


def add(context: StepContext) -> Outcome:
    """Adds the tag. Raises StepFailed for an invalid tag, and if the contact is gone."""
    tag, contact = templated_values.read(context, "tag", normalization.tag), context.contact
    if tag in contact.tags:
        return Done(f"The contact had the tag '{tag}' already.", {"tag": tag})
    contacts.add_tag(context.change({"name": tag}, contact.id))
    return Done(f"The tag '{tag}' was added.", {"tag": tag})


def remove(context: StepContext) -> Outcome:
    """Removes the tag. Raises StepFailed for an invalid tag, and if the contact is gone."""
    tag, contact = templated_values.read(context, "tag", normalization.tag), context.contact
    if tag not in contact.tags:
        return Done(f"The contact did not have the tag '{tag}'.", {"tag": tag})
    contacts.remove_tag(context.change({"name": tag}, contact.id))
    return Done(f"The tag '{tag}' was removed.", {"tag": tag})


def _kind(verb: str, icon: str, description: str, begin: Callable[[StepContext], Outcome], example: str) -> StepKind:
    return StepKind(
        entry=Entry(f"{verb} a tag", icon),
        words=lambda step, names: Words(f"{verb} the tag {quoted(step['tag'])}"),
        description=description,
        fields={"tag": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The tag; a template."}},
        required=("tag",),
        templates=("tag",),
        check=partial(templated_values.check, "tag", normalization.tag),
        begin=begin,
        example={"tag": example},
    )


ADD = _kind("Add", "tag", "Adds a tag to the contact; does nothing if the contact has it.", add, "vip")
REMOVE = _kind(
    "Remove", "x", "Removes a tag from the contact; does nothing if the contact does not have it.", remove, "lead"
)
