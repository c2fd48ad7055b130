"""Mentions: the names of automations, members, channels and segments that definitions refer to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.automations.imports.named_resources import SORTS
from app.domain.work import audit
from app.models.automations import Automation
from app.models.channels import Channel
from app.models.segments import Segment

_IDENTIFIER = re.compile("(aut|mem|chn|seg)_[0-9a-z]{26}")
_NAMED: Mapping[str, Any] = {"aut": Automation, "chn": Channel, "seg": Segment}
MOST_NAMED = 200


def names_of(workspace_id: str, *definitions: Any) -> dict[str, str]:
    """Returns the names of resources of the workspace that the definitions name, by identifier.

    Looks up at most MOST_NAMED resources of each type, with one statement for each type.
    """
    wanted: dict[str, set[str]] = {}
    for identifier in _identifiers(list(definitions)):
        of_sort = wanted.setdefault(identifier[:3], set())
        if len(of_sort) < MOST_NAMED:
            of_sort.add(identifier)
    members = wanted.pop("mem", None)
    names = audit.names_of(workspace_id, members) if members else {}
    for sort, identifiers in wanted.items():
        model = _NAMED[sort]
        found = model.select(model.id, model.name).where(model.workspace_id == workspace_id)
        names |= dict(found.where(model.id.in_(sorted(identifiers))).tuples())
    return names


def _identifiers(value: Any) -> Iterator[str]:
    """Yields the identifiers in the fields of SORTS, at any depth of the value."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            pending += each.values()
            named = (each.get(name) for name in SORTS)
            yield from (found for found in named if isinstance(found, str) and _IDENTIFIER.fullmatch(found))
        elif isinstance(each, list):
            pending += each
