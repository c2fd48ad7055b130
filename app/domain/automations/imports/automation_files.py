"""Files of automations: recognizes and reads files to import, and writes our own format.

Files in our own format carry automations to other workspaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations import definitions
from app.domain.automations.automations import REENTRY
from app.domain.automations.imports import rapidpro_flows, sources, typebot_flows
from app.domain.automations.imports.sources import Imported, Unreadable, mapping, text
from app.errors import Fault
from app.lib import json, normalization
from app.models.automations import Automation

KIND = "bellhop"
FORMAT = 1
MOST_DEFINITION_BYTES = 262_144  # the limit of any request body
_SHOWN = 5  # how many faults a sentence lists
FILE_KINDS: Mapping[str, str] = {
    KIND: "This is an automation of Bellhop",
    typebot_flows.KIND: "This is a typebot",
    rapidpro_flows.KIND: "These are flows of RapidPro",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file that can be imported.

    `flows`: the names of its flows. `names`: the names of the resources that it mentions, by identifier.
    """

    kind: str
    document: Mapping[str, Any]
    flows: Sequence[str] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def read(self, number: int = 0) -> Imported:
        """Reads the automation; if there are several, the one with that number. Raises Unreadable."""
        if self.kind == rapidpro_flows.KIND:
            return rapidpro_flows.read(self.document, number)
        if self.kind == typebot_flows.KIND:
            return typebot_flows.read(self.document)
        return read(self.document)


def recognize(raw: bytes | str) -> File:
    """Recognizes the kind of the file. Raises Unreadable if the kind is not known."""
    document = sources.load(raw)
    for each in (document, mapping(document.get("typebot"))):
        if typebot_flows.is_export(each):
            return File(typebot_flows.KIND, each)
    if rapidpro_flows.is_export(document):
        return File(rapidpro_flows.KIND, document, rapidpro_flows.names(document))
    if isinstance(document.get("nodes"), list) and "spec_version" in document:
        return File(rapidpro_flows.KIND, {"flows": [document]}, rapidpro_flows.names({"flows": [document]}))
    # One of our files, or the API's body of an automation.
    if document.get("bellhop") == "automation" or "definition" in document:
        named = mapping(document.get("names")).items()
        return File(KIND, document, names={key: text(name)[:200] for key, name in named if isinstance(name, str)})
    raise Unreadable(
        "This is none of the files that can be imported: an automation of Bellhop, an export of Typebot, or one of"
        " RapidPro's flows."
    )


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


def _sentence(faults: list[Fault]) -> str:
    listed = [f"{fault.pointer}: {fault.detail}" for fault in faults[:_SHOWN]]
    more = f" And {len(faults) - _SHOWN} more." if len(faults) > _SHOWN else ""
    return f"The automation in the file has faults. {' '.join(listed)}{more}"
