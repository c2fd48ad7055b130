"""Differences between two definitions in words: steps added, removed, moved or changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.domain.automations.steps import STEP_KINDS
from app.domain.triggers import plain_words
from app.domain.triggers.plain_words import Given, Names, condition, cut
from app.lib import json
from app.web.automations import wordings
from app.web.automations.showings import Mark

LONGEST_VALUE = 200
MARKS: Mapping[str, Mark] = {
    "added": Mark("New", "good"),
    "removed": Mark("Removed", "bad"),
    "moved": Mark("Moved", "busy"),
    "changed": Mark("Changed", "warn"),
}
Field = tuple[str, str, str]  # the name, the value before, and the value after
# A step, and the list that contains it: its outer step and branch, (None, "") at the top.
_Place = tuple[Given, tuple[str | None, str]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference in a step. `what`: a key of MARKS. `words`: describes the step. `fields`: changes."""

    what: str
    step_id: str
    words: str
    fields: Sequence[Field] = ()


def between(old: Given, new: Given, names: Names) -> list[Difference]:
    """Lists the differences: in the order of the new definition's steps, then the removed steps.

    A step that was both moved and changed has two. `names`: the names of resources, by identifier.
    """
    before, after = _places(old), _places(new)
    moved = _moved(before, after)
    found = []
    for step_id in dict.fromkeys((*after, *before)):
        step, _ = after.get(step_id) or before[step_id]
        words = wordings.step(step, names).sentence
        if step_id not in before:
            found.append(Difference("added", step_id, words))
        elif step_id not in after:
            found.append(Difference("removed", step_id, words))
        else:
            if step_id in moved:
                found.append(Difference("moved", step_id, words))
            if fields := _fields(before[step_id][0], step):
                found.append(Difference("changed", step_id, words, fields))
    return found


def of_triggers(old: Given, new: Given, names: Names) -> list[tuple[str, str]]:
    """Returns ("added" or "removed", words) for each trigger that only one of the definitions has."""
    before, after = (
        [plain_words.trigger(each, names) for each in given.get("triggers") or () if isinstance(each, dict)]
        for given in (old, new)
    )
    added = [("added", each) for each in after if each not in before]
    return added + [("removed", each) for each in before if each not in after]


def marks_of(found: Sequence[Difference]) -> dict[str, Mark]:
    """Returns the marks for a picture, by step.

    A step that was moved and changed is marked as changed.
    """
    return {each.step_id: MARKS[each.what] for each in found}


def _places(definition: Given) -> dict[str, _Place]:
    found: dict[str, _Place] = {}

    def walk(steps: Sequence[Given], within: tuple[str | None, str]) -> None:
        for each in steps:
            if isinstance(each, dict) and isinstance(each.get("id"), str):
                found[each["id"]] = each, within
                for way in wordings.ways(each):
                    walk(way.steps, (each["id"], str(way.key)))

    walk(definition.get("steps") or (), (None, ""))
    return found


def _moved(before: Mapping[str, _Place], after: Mapping[str, _Place]) -> set[str]:
    """Returns the steps that are in another list, or in another order within theirs."""
    common = [step_id for step_id in after if step_id in before]
    stayed = [step_id for step_id in common if before[step_id][1] == after[step_id][1]]
    moved = set(common) - set(stayed)
    lists: dict[Any, list[str]] = {}
    for step_id in stayed:
        lists.setdefault(after[step_id][1], []).append(step_id)
    then = {step_id: place for place, step_id in enumerate(before)}
    for now in lists.values():
        kept = _rising([then[step_id] for step_id in now])
        moved |= {step_id for step_id in now if then[step_id] not in kept}
    return moved


def _rising(places: Sequence[int]) -> set[int]:
    """Returns the members of a longest rising subsequence of the places, in n log n steps."""
    # `ends`: for each length, the lowest place that ends a rising subsequence of that length. `before`: for each place,
    # its predecessor in such a subsequence.
    ends: list[int] = []
    before: dict[int, int] = {}
    for place in places:
        length = bisect_left(ends, place)
        if length:
            before[place] = ends[length - 1]
        ends[length : length + 1] = [place]
    found = set(ends[-1:])
    last = ends[-1] if ends else None
    while last in before:
        last = before[last]
        found.add(last)
    return found


def _fields(old: Given, new: Given) -> list[Field]:
    before, after = _own(old), _own(new)
    found = []
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            label = "time" if name == "seconds" else name.removesuffix("_seconds").replace("_", " ")
            found.append((label, _value(name, before.get(name)), _value(name, after.get(name))))
    return found


def _own(given: Given) -> dict[str, Any]:
    kind = STEP_KINDS.get(str(given.get("kind")))
    own = {name: value for name, value in given.items() if name != "id" and not (kind and name in kind.lists)}
    if kind and kind.arms and isinstance(own.get(kind.arms), list):
        arms = [arm for arm in own[kind.arms] if isinstance(arm, dict)]
        own[kind.arms] = ", ".join(f"{arm.get('name')} {arm.get('percent')} %" for arm in arms)
    return own


def _value(name: str, value: Any) -> str:
    if value is None:
        return "nothing"
    if name.endswith("seconds") and isinstance(value, int):
        return plain_words.duration(value)
    if isinstance(value, dict) and ({"all", "any", "not"} & value.keys() or {"field", "is"} <= value.keys()):
        try:
            return cut(condition(value), LONGEST_VALUE)
        except (KeyError, TypeError, AttributeError):
            pass
    return cut(value if isinstance(value, str) else json.dumps(value).decode(), LONGEST_VALUE)
