"""Choices in the editor's forms: options, completions and names of variables, all bounded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from app.domain.automations import definitions
from app.domain.automations.editing import previews, step_trees
from app.domain.automations.steps.set_field import CUSTOM, field_of
from app.domain.contacts import contact_names
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.segments import Segment
from app.web.access import workspace_id
from app.web.inbox import inbox_pages

# The most options of a select. If there are more resources, only the newest can be chosen.
MOST_CHOICES = 500
# How many of the newest contacts are read for completions, such as tags; how many completions an input has; and for how
# many contacts a text can be previewed.
MOST_CONTACTS, MOST_COMPLETIONS, MOST_PEOPLE = 200, 300, 20
MOST_VARIABLES = 400
_SETTABLE = ("email", "phone", "external_id", "first_name", "last_name", "locale", "timezone", "opted_out")
_ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "Europe/Paris",
    "America/New_York",
    "America/Los_Angeles",
    "Asia/Tokyo",
    "UTC",
)


class Choices:
    """The choices of one form. Reads only what its inputs need."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self._definition = definition
        self._contacts: list[Contact] | None = None

    def options(self, name: str) -> Sequence[tuple[str, str]]:
        """Returns the (identifier, name) options of the select for a field."""
        return _OPTIONS[name]()

    def completions(self, name: str) -> Sequence[str]:
        """Returns the completions of an input, by the name of its list."""
        return _COMPLETIONS[name](self)[:MOST_COMPLETIONS]

    def variables(self) -> list[str]:
        """Names for templates and conditions, up to MOST_VARIABLES; steps and the contact come first."""
        known = previews.paths(definitions.names(self._definition))
        named = {
            f"steps.{each.step['save_as']}" for each in step_trees.walk(self._definition) if each.step.get("save_as")
        }
        first = [each for each in known if each.startswith(("steps.", "contact."))]
        own = [f"contact.custom_fields.{name}" for name in self.custom_fields()]
        ordered = [*sorted(named), *first, *own, *(each for each in known if each.startswith("trigger."))]
        return list(dict.fromkeys([*ordered, *known]))[:MOST_VARIABLES]

    def people(self) -> list[tuple[str, str]]:
        """The newest contacts, for which a text can be previewed."""
        return [(contact.id, contact_names.name_of(contact)) for contact in self.contacts()[:MOST_PEOPLE]]

    def contacts(self) -> list[Contact]:
        """The newest contacts, read once."""
        if self._contacts is None:
            self._contacts = Contact.newest(workspace_id(), {}, None, MOST_CONTACTS)
        return self._contacts

    def custom_fields(self) -> list[str]:
        """The names of custom fields: of the newest contacts, and the fields that steps set."""
        found = {name for contact in self.contacts() for name in contact.custom_fields}
        for each in step_trees.walk(self._definition):
            name = each.step.get("field")
            if each.step["kind"] == "set_field" and isinstance(name, str) and field_of(name) not in _SETTABLE:
                found.add(field_of(name).removeprefix(CUSTOM))
        return sorted(found)

    def tags(self) -> list[str]:
        """The tags of the newest contacts, and the tags in the definition."""
        found = {tag for contact in self.contacts() for tag in contact.tags}
        named = [*(each.step for each in step_trees.walk(self._definition)), *self._definition.get("triggers", [])]
        found |= {each["tag"] for each in named if isinstance(each.get("tag"), str) and "{" not in each["tag"]}
        return sorted(found)


def _members() -> list[tuple[str, str]]:
    return [("null", "Nobody"), *list(inbox_pages.people().items())[:MOST_CHOICES]]


def _newest(model: Any) -> list[tuple[str, str]]:
    found = model.in_workspace(workspace_id()).select(model.id, model.name).order_by(model.id.desc())
    return [(each.id, each.name) for each in found.limit(MOST_CHOICES)]


_OPTIONS: Mapping[str, Callable[[], Sequence[tuple[str, str]]]] = {
    "automation_id": partial(_newest, Automation),
    "assignee_id": _members,
    "segment_id": partial(_newest, Segment),
    "channel_id": partial(_newest, Channel),
}
_COMPLETIONS: Mapping[str, Callable[[Choices], Sequence[str]]] = {
    "tags": Choices.tags,
    "contact-fields": lambda choices: [*_SETTABLE, *choices.custom_fields()],
    "date-fields": lambda choices: [f"contact.custom_fields.{name}" for name in choices.custom_fields()],
    "zones": lambda choices: _ZONES,
    "labels": lambda choices: sorted(
        {each.step["label"] for each in step_trees.walk(choices._definition) if isinstance(each.step.get("label"), str)}
    ),
    "paths": Choices.variables,
}
