"""Conversions: turns a graph into a definition without faults, and accounts for all source parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.domain.automations import definitions
from app.domain.automations.editing import step_trees
from app.domain.automations.imports.flow_graphs import Graph
from app.domain.automations.imports.nestings import Nesting, nest
from app.domain.automations.imports.sources import Imported, Ledger, NameTable, Work
from app.errors import Fault
from app.lib import json

_CHECKED = 300  # cost of checking one step, in characters
_INSIDE = ("steps", "then", "else", "otherwise")


def convert(
    kind: str,
    name: str,
    graph: Graph,
    names: NameTable,
    ledger: Ledger,
    parts: Mapping[str, str],
    *,
    triggers: Sequence[Mapping[str, Any]] = (),
    kept: Iterable[str] = (),
) -> Imported:
    """Converts the graph to an automation. `parts`: where each part of the source is, in words.

    `kept`: parts that are accounted for outside the graph. Every part is kept or noted as lost in the ledger, even if
    nothing leads to the part. Raises Unreadable.
    """
    nesting = nest(graph, names, ledger)
    definition = {"triggers": list(triggers), "steps": nesting.steps}
    gone = _without_faults(definition, nesting, ledger, graph.work)
    followed = {*nesting.kept, *kept}
    accounted = followed | {entry.source for entry in ledger.lost}
    for source, where in parts.items():
        if source not in accounted:
            ledger.lose(source, where, "Nothing that was imported leads here.")
    return Imported(kind, name, definition, tuple(ledger.lost), frozenset(followed - gone))


def without_faults(imported: Imported) -> Imported:
    """Removes steps and triggers with faults from `imported`, and returns it.

    A step that names a removed step has a fault, too. Raises Unreadable if the removal takes more work than
    COMPUTING_PER_IMPORT.
    """
    ledger = Ledger(dict.fromkeys(imported.lost))
    _without_faults(imported.definition, Nesting(), ledger, Work())
    imported.lost = tuple(ledger.lost)
    return imported


def _without_faults(definition: dict[str, Any], nesting: Nesting, ledger: Ledger, work: Work) -> set[str]:
    """Removes steps and triggers with faults; returns the source parts that no step is left of."""
    gone: set[str] = set()
    while faults := _faults(definition, work):
        for fault in _outermost(faults):
            for step in _remove(definition, fault):
                sources, where = nesting.sources.get(step["id"], ((), "The definition"))
                for source in sources or ("",):
                    ledger.lose(source, where, fault.detail)
                    gone.add(source)
    left = [placed.step["id"] for placed in step_trees.walk(definition)]
    return gone - {source for step in left if step in nesting.sources for source in nesting.sources[step][0]}


def _faults(definition: Mapping[str, Any], work: Work) -> list[Fault]:
    # Counted as work, because every removal needs another check: if each step names the step before it, removing one
    # makes the next one faulty.
    written = json.dumps(definition)
    work.spend(len(written) + _CHECKED * written.count(b'"kind"'))
    return definitions.faults(definition)


def _outermost(faults: Sequence[Fault]) -> list[Fault]:
    """Returns a fault of each outermost faulty step, later steps first, so that pointers stay valid."""
    by_owner: dict[tuple[Any, ...], Fault] = {}
    for fault in faults:
        by_owner.setdefault(_owner(fault.pointer), fault)
    kept = [key for key in by_owner if not any(key[:length] in by_owner for length in range(2, len(key)))]
    return [by_owner[key] for key in sorted(kept, reverse=True, key=_in_order)]


def _owner(pointer: str) -> tuple[Any, ...]:
    """Returns the path of the step or trigger that a pointer leads into."""
    parts: list[Any] = [int(part) if part.isdigit() else part for part in pointer.split("/")[1:]]
    end = 2
    for at in range(2, len(parts)):
        if isinstance(parts[at], int) and parts[at - 1] in _INSIDE:
            end = at + 1
    return tuple(parts[:end])


def _in_order(path: Sequence[Any]) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (0, part) for part in path]


def _remove(definition: dict[str, Any], fault: Fault) -> list[Mapping[str, Any]]:
    """Removes the step or trigger with the fault; returns all removed steps, at any depth."""
    *path, index = _owner(fault.pointer)
    holder: Any = definition
    for part in path:
        holder = holder[part]
    if not isinstance(index, int):  # a fault of the whole list
        raise AssertionError(fault)
    removed = holder.pop(index)
    return [placed.step for placed in step_trees.walk({"steps": [removed]})] if path[0] == "steps" else [{"id": ""}]
