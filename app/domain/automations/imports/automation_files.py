"""Files of automations in our own format, which carry them to other workspaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.automations import definitions
from app.domain.automations.automations import REENTRY
from app.domain.automations.imports.sources import Imported, Unreadable, mapping, text
from app.errors import Fault
from app.lib import json, normalization
from app.models.automations import Automation

KIND = "bellhop"
FORMAT = 1
MOST_DEFINITION_BYTES = 262_144  # the limit of any request body
_SHOWN = 5  # how many faults a sentence lists


def file_of(automation: Automation, names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the automation's draft as a file. `names`: the names of resources, by identifier."""
    return {
        "bellhop": "automation",
        "format": FORMAT,
        "name": automation.name,
        "definition": automation.definition,
        "exits": automation.exits,
        "goal": automation.goal,
        "reentry": automation.reentry,
        "names": dict(names),
    }


def is_file(document: Mapping[str, Any]) -> bool:
    """Whether `document` looks like one of our files, or like the API body of an automation."""
    return document.get("bellhop") == "automation" or "definition" in document


def read(document: Mapping[str, Any]) -> Imported:
    """Reads the automation in a file. Raises Unreadable, which lists the faults of its definition."""
    if "bellhop" in document and document.get("format") != FORMAT:
        raise Unreadable("This file was made by a newer Bellhop.")
    definition, exits = document.get("definition"), document.get("exits") or []
    if len(json.dumps(definition)) > MOST_DEFINITION_BYTES:
        raise Unreadable(f"The definition is larger than {MOST_DEFINITION_BYTES // 1024} KiB.")
    goal, reentry = document.get("goal"), document.get("reentry")
    faults = definitions.faults(definition, "/definition") + definitions.exit_faults(exits, "/exits")
    if goal is not None:
        faults += definitions.goal_faults(goal, "/goal")
    if reentry is not None and reentry not in REENTRY:
        faults.append(Fault("/reentry", f"Give one of {', '.join(REENTRY)}, or null."))
    if faults:
        raise Unreadable(_sentence(faults))
    assert isinstance(definition, dict)
    try:
        name = normalization.name(text(document.get("name")))
    except ValueError:
        name = "Imported automation"
    return Imported(KIND, name, {"triggers": [], **definition}, exits=exits, goal=goal, reentry=reentry)


def names_in(document: Mapping[str, Any]) -> dict[str, str]:
    """Returns the names of the resources that the file mentions, by identifier."""
    return {key: text(name)[:200] for key, name in mapping(document.get("names")).items() if isinstance(name, str)}


def _sentence(faults: list[Fault]) -> str:
    listed = [f"{fault.pointer}: {fault.detail}" for fault in faults[:_SHOWN]]
    more = f" And {len(faults) - _SHOWN} more." if len(faults) > _SHOWN else ""
    return f"The automation in the file has faults. {' '.join(listed)}{more}"
