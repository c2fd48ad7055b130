"""Adoptions: shows an imported automation before it is created, with choices for its resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from werkzeug.wrappers import Response

from app.domain.automations.imports import named_resources
from app.domain.automations.imports.named_resources import Named
from app.domain.automations.imports.sources import Imported, Unreadable
from app.domain.people import members
from app.lib import graphemes, ids, normalization
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.segments import Segment
from app.web import writes
from app.web.access import workspace_id
from app.web.automations import layouts, mentions
from app.web.automations.pictures import Picture
from app.web.automations.showings import Showing
from app.web.forms import typed_all
from app.web.redirects import to

# The most resources of one type that a select offers, and the most selects of a page.
MOST_OFFERED, MOST_NAMED = 1_000, 50
NOBODY = ""
_MODELS: Mapping[str, Any] = {"automation": Automation, "channel": Channel, "segment": Segment}


@dataclass(frozen=True, slots=True)
class Choice:
    """A resource that the automation names: its former name, its replacement, and the options."""

    named: Named
    label: str
    chosen: str
    options: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Adoption:
    """An automation that can be created, with its choices and its picture."""

    imported: Imported
    choices: Sequence[Choice]
    drawn: Picture
    showing: Showing

    @property
    def is_whole(self) -> bool:
        """Whether every resource that the automation names has a replacement in this workspace."""
        return all(choice.chosen for choice in self.choices)


def adopt(imported: Imported, names: Mapping[str, str], *, is_chosen: bool) -> Adoption:
    """Returns the adoption of an automation. `names`: its resources' former names, by identifier.

    With `is_chosen`, takes the replacements from the form's fields `use`; otherwise resources with the same identifier
    or name. Raises Unreadable.
    """
    given = typed_all("use") if is_chosen else []
    named = named_resources.named(imported)
    if len(named) > MOST_NAMED:
        raise Unreadable(
            f"The file names {len(named):,} automations, members, channels and segments. At most {MOST_NAMED} can be"
            " chosen here: import it in parts."
        )
    offered = {sort: _options(sort) for sort in dict.fromkeys(each.sort for each in named)}
    choices = []
    for number, each in enumerate(named):
        options = offered[each.sort]
        known = dict(options)
        if is_chosen:
            chosen = given[number] if number < len(given) else NOBODY
        else:
            same = [key for key, label in options if label == names.get(each.id)]
            chosen = each.id if each.id in known else (same or [NOBODY])[0]
        chosen = chosen if chosen in known else NOBODY
        choices.append(Choice(each, names.get(each.id, ""), chosen, options))
    chosen_ids = {choice.named.id: choice.chosen for choice in choices}
    made = named_resources.replaced(imported, chosen_ids, lambda key: names.get(key) or f"'{key}'")
    known = mentions.names_of(workspace_id(), made.definition, made.exits)
    drawn = layouts.draw(made.definition, known, exits=made.exits, goal=made.goal)
    return Adoption(made, choices, drawn, Showing())


def create(adoption: Adoption, name: str) -> Response:
    """Creates the draft and redirects to it, or to the list if the write is delayed.

    Raises Invalid, Conflict.
    """
    made = adoption.imported
    body: dict[str, Any] = {"name": name, "definition": made.definition, "exits": list(made.exits)}
    body |= {"goal": made.goal, "reentry": made.reentry}
    job = writes.submit("automations.create", body, ids.new("aut"))
    if not job.is_finished:
        return to("automation_pages.index")
    return to("automation_pages.show", "It is a draft. Look it over, then publish it.", automation_id=job.resource_id)


def named_like(name: str) -> str:
    """Returns the automation's name, shortened, or a default if it is not valid."""
    try:
        return normalization.name(graphemes.cut(name, 200))
    except ValueError:
        return "Imported automation"


def _options(sort: str) -> list[tuple[str, str]]:
    """Lists the workspace's resources of this type, by name."""
    if sort == "member":
        found = [(each.member_id, each.email) for each in members.of_workspace(workspace_id())]
    else:
        model = _MODELS[sort]
        query = model.in_workspace(workspace_id()).select(model.id, model.name)
        found = [(row.id, row.name) for row in query.order_by(model.name).limit(MOST_OFFERED)]
    return [(NOBODY, "None: leave it out"), *found]
