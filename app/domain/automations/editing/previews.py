"""Previews: renders a draft's text for a contact, as far as possible before a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app import bounds
from app.domain.automations.definitions import known_names
from app.domain.contacts import contacts
from app.domain.people import workspaces
from app.domain.triggers import timed_triggers
from app.domain.webhooks import catalogue
from app.errors import Conflict
from app.lib import json, templates
from app.lib.templates import Budget, Overspent, TemplateError
from app.models.contacts import Contact


def render(text: str, contact: Contact, definition: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Returns the text rendered for the contact, and the names that print nothing.

    Uses the first trigger's sample event; results of steps are unknown. Raises Conflict if the text is no valid
    template, or takes too much work.
    """
    variables: dict[str, Any] = {"contact": json.loads(json.dumps(contacts.represent(contact)))}
    variables |= {"workspace": {"timezone": workspaces.find(contact.workspace_id).timezone}}
    variables |= {"trigger": {"event": sample_event(definition, contact.workspace_id), "variables": {}}}
    budget = Budget(bounds.COMPUTING_PER_STEP.most)
    try:
        return templates.render(text, {**variables, "steps": {}}, budget), list(budget.missing)
    except Overspent as error:
        bounds.COMPUTING_PER_STEP.reached()
        raise Conflict("The text takes too many steps to be filled in.") from error
    except TemplateError as error:
        raise Conflict(str(error)) from error


def sample_event(definition: Mapping[str, Any], workspace_id: str) -> Mapping[str, Any] | None:
    """Returns a sample of the first event that a trigger names or precedes; None if none does."""
    for trigger in definition.get("triggers", []):
        kind = "booking.created" if "before" in trigger else trigger.get("event")
        if (kind in catalogue.EVENT_KINDS) and (kind == "booking.created" or not timed_triggers.is_timed(trigger)):
            sample: Mapping[str, Any] = catalogue.sample(kind, workspace_id)
            return sample
    return None


def paths(names: known_names.Names, before: str = "", depth: int = 0) -> list[str]:
    """Returns the innermost names as paths of up to seven names, such as `contact.first_name`."""
    found: list[str] = []
    for name, inner in names.items():
        path = f"{before}{name}"
        found += paths(inner, f"{path}.", depth + 1) if inner and depth < 6 else [path]
    return found
