"""`remove_tag`: removes a tag from the contact."""

from __future__ import annotations

from app.domain.automations.steps import tags
from app.domain.automations.steps.base import Done, Kind, Moment, Outcome
from app.domain.contacts import contacts


def begin(moment: Moment) -> Outcome:
    """Removes the tag. Raises StepFailed."""
    tag, contact = tags.rendered(moment), moment.contact
    if tag not in contact.tags:
        return Done(f"The contact did not have the tag '{tag}'.", {"tag": tag})
    contacts.remove_tag(moment.change({"name": tag}, contact.id))
    return Done(f"The tag '{tag}' was removed.", {"tag": tag})


KIND = Kind(
    description="Removes a tag from the contact; does nothing if the contact does not have it.",
    fields=tags.FIELDS,
    required=("tag",),
    templates=("tag",),
    check=tags.check,
    begin=begin,
    example={"kind": "remove_tag", "tag": "lead"},
)
