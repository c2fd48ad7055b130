"""Names: lists the names that templates and conditions can use, and finds unknown names.

Names are paths, such as `contact.first_name`. Where only a run knows the names (custom fields, variables, the body of a
response), every name is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from app.domain.contacts.contacts import ContactSchema
from app.domain.conversations.conversations import ConversationSchema
from app.domain.segments.scans import FURTHER_FIELDS
from app.domain.webhooks import catalogue
from app.errors import Fault, pointer_to
from app.lib import templates
from app.lib.nearest_names import MOST_LISTED, nearest
from app.lib.templates import TemplateError

# Known names, each with the names below it; None accepts any.
Names: TypeAlias = Mapping[str, "Names | None"]

CONTACT_FIELDS = tuple(ContactSchema().fields)
DEEPEST_VALUE = 20
CONTACT: Names = dict.fromkeys(CONTACT_FIELDS)
# Further names that templates can use.
WORKSPACE: Names = {"workspace": {"timezone": None}}
_CONVERSATION: Names = dict.fromkeys(ConversationSchema().fields)
# Names that filters of contacts can use.
OF_FILTERS: Names = {"contact": {**CONTACT, **dict.fromkeys(FURTHER_FIELDS)}}


def of_steps(results: Mapping[str, Collection[str] | None], events: Iterable[str]) -> Names:
    """Returns the names that steps can use. `results`: the members of each name in `steps`.

    `events`: the kinds of events that start the runs.
    """
    steps = {name: None if members is None else dict.fromkeys(members) for name, members in results.items()}
    trigger = {"event": _event(frozenset(events)), "variables": None}
    run: Names = {"id": None, "variables": None}
    return {**of_events(events), **WORKSPACE, "trigger": trigger, "steps": steps, "run": run}


def of_events(events: Iterable[str]) -> Names:
    """Returns the names that a condition on an event of one of the kinds can use."""
    return {"contact": CONTACT, "conversation": _CONVERSATION, "trigger": {"event": _event(frozenset(events))}}


def of_exits(events: Iterable[str]) -> Names:
    """Returns the names that conditions of exits can use: also `steps`, and `run` with its event.

    Accepts any step and variable, because an exit applies to runs of every version.
    """
    run: Names = {"id": None, "variables": None, "trigger": {"event": None}}
    return {**of_events(events), "steps": None, "run": run}


def fault(path: Sequence[str], names: Names) -> str | None:
    """Returns a sentence about the first unknown name in the path; None if there is none."""
    known: Names | None = names
    for depth, name in enumerate(path):
        if known is None:
            return None
        if name not in known:
            return _unknown(path[:depth], name, known)
        known = known[name]
    return None


def template_faults(template: str, names: Names) -> Iterator[str]:
    """Yields the faults of a template: a syntax error, or unknown names."""
    try:
        named = templates.named(template)
    except TemplateError as error:
        yield str(error)
    else:
        yield from (wrong for path in named if (wrong := fault(path, names)))


def value_faults(
    value: Any, at: str, names: Names, spend: Callable[[int], None] | None = None, depth: int = 0
) -> Iterator[Fault]:
    """Yields the faults of the templates in the JSON value at the pointer `at`.

    A value nested deeper than DEEPEST_VALUE is a fault, too. `spend` is called with the number of words in a template's
    tags, before the template is parsed.
    """
    if isinstance(value, str):
        if spend is not None and "{" in value:
            spend(templates.words_of(value))
        yield from (Fault(at, wrong) for wrong in template_faults(value, names))
    elif isinstance(value, (dict, list)):
        if depth == DEEPEST_VALUE:
            yield Fault(at, f"Values are nested at most {DEEPEST_VALUE} levels deep.")
            return
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from value_faults(inner, at + pointer_to(key), names, spend, depth + 1)


def _unknown(before: Sequence[str], name: str, known: Names) -> str:
    def full(name: str) -> str:
        return ".".join((*before, name))

    there_is_none = f"There is no '{full(name)[:200]}'."
    if not known:
        return f"{there_is_none} '{'.'.join(before)}' has no members."
    if meant := nearest(name, known):
        return f"{there_is_none} Did you mean '{full(meant)}'?"
    listed = sorted(known)
    rest = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
    return f"{there_is_none} There are: {', '.join(map(full, listed[:MOST_LISTED]))}{rest}."


@lru_cache(1_000)
def _event(kinds: frozenset[str]) -> Names:
    """Returns the members of the events' bodies, with the members of their resources."""
    data: dict[str, Names | None] = {}
    for kind in sorted(kinds):
        for name, value in catalogue.EVENT_KINDS[kind].sample().items():
            data[name] = _merged(data.get(name), value)
    return {**dict.fromkeys(("id", "kind", "created_at", "workspace_id")), "data": data}


def _merged(known: Names | None, value: Any) -> Names | None:
    return {**(known or {}), **dict.fromkeys(value)} if isinstance(value, Mapping) else None
