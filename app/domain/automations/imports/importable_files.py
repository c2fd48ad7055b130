"""Importable files: recognizes the kind of a file, and reads its automations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.imports import automation_files, rapidpro_flows, sources, typebot_flows
from app.domain.automations.imports.sources import Imported, Unreadable

KINDS: Mapping[str, str] = {
    automation_files.KIND: "This is an automation of Bellhop",
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
        return automation_files.read(self.document)


def recognize(raw: bytes | str) -> File:
    """Recognizes the kind of the file. Raises Unreadable if the kind is not known."""
    document = sources.load(raw)
    if typebot_flows.is_export(document):
        return File(typebot_flows.KIND, document)
    if isinstance(document.get("typebot"), dict) and typebot_flows.is_export(document["typebot"]):
        return File(typebot_flows.KIND, document["typebot"])
    if rapidpro_flows.is_export(document):
        return File(rapidpro_flows.KIND, document, rapidpro_flows.names(document))
    if isinstance(document.get("nodes"), list) and "spec_version" in document:
        return File(rapidpro_flows.KIND, {"flows": [document]}, rapidpro_flows.names({"flows": [document]}))
    if automation_files.is_file(document):
        return File(automation_files.KIND, document, names=automation_files.names_in(document))
    raise Unreadable(
        "This is none of the files that can be imported: an automation of Bellhop, an export of Typebot, or one of"
        " RapidPro's flows."
    )
