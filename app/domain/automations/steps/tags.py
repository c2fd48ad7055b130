"""`add_tag` and `remove_tag`: change the tags of the contact."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.domain.automations.steps.base import Done, Kind, Moment, Outcome, StepFailed
from app.domain.contacts import contacts
from app.errors import Fault
from app.lib import normalization


def add(moment: Moment) -> Outcome:
    """Adds the tag. Raises StepFailed."""
    tag, contact = _rendered(moment), moment.contact
    if tag in contact.tags:
        return Done(f"The contact had the tag '{tag}' already.", {"tag": tag})
    contacts.add_tag(moment.change({"name": tag}, contact.id))
    return Done(f"The tag '{tag}' was added.", {"tag": tag})


def remove(moment: Moment) -> Outcome:
    """Removes the tag. Raises StepFailed."""
    tag, contact = _rendered(moment), moment.contact
    if tag not in contact.tags:
        return Done(f"The contact did not have the tag '{tag}'.", {"tag": tag})
    contacts.remove_tag(moment.change({"name": tag}, contact.id))
    return Done(f"The tag '{tag}' was removed.", {"tag": tag})


def _rendered(moment: Moment) -> str:
    """The step's tag. Raises StepFailed if the text is none."""
    try:
        return normalization.tag(moment.render(moment.step.fields["tag"]))
    except ValueError as error:
        raise StepFailed("error", str(error)) from error


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields what is wrong with a tag that is not a template."""
    tag = step.get("tag")
    if isinstance(tag, str) and "{" not in tag:
        try:
            normalization.tag(tag)
        except ValueError as error:
            yield Fault(f"{pointer}/tag", str(error))


def _kind(description: str, begin: Callable[[Moment], Outcome], example: Mapping[str, Any]) -> Kind:
    tag = {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The tag; a template."}
    return Kind(
        description=description,
        fields={"tag": tag},
        required=("tag",),
        templates=("tag",),
        check=check,
        begin=begin,
        example=example,
    )


ADD = _kind("Adds a tag to the contact; does nothing if the contact has it.", add, {"kind": "add_tag", "tag": "vip"})
REMOVE = _kind(
    "Removes a tag from the contact; does nothing if the contact does not have it.",
    remove,
    {"kind": "remove_tag", "tag": "lead"},
)
