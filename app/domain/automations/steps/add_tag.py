"""`add_tag`: adds a tag to the contact."""

from __future__ import annotations

from app.domain.automations.steps import tags
from app.domain.automations.steps.base import Done, Kind, Moment, Outcome
from app.domain.contacts import contacts


def begin(moment: Moment) -> Outcome:
    """Adds the tag. Raises StepFailed."""
    tag, contact = tags.rendered(moment), moment.contact
    if tag in contact.tags:
        return Done(f"The contact had the tag '{tag}' already.", {"tag": tag})
    contacts.add_tag(moment.change({"name": tag}, contact.id))
    return Done(f"The tag '{tag}' was added.", {"tag": tag})


KIND = Kind(
    description="Adds a tag to the contact; does nothing if the contact has it.",
    fields=tags.FIELDS,
    required=("tag",),
    templates=("tag",),
    check=tags.check,
    begin=begin,
    example={"kind": "add_tag", "tag": "vip"},
)
