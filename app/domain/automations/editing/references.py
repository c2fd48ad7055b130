"""References: finds, renames and makes the names by which steps refer to others, `steps.<id>`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from app.domain.automations.editing import step_trees
from app.domain.automations.steps import STEP_KINDS, templated_values

LONGEST_ID = 64
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_NAMED = re.compile(
    r"""(?<![\w.-])steps(?:\.(?P<plain>[A-Za-z0-9_-]+)|\[(?P<quote>["'])(?P<quoted>[A-Za-z0-9_-]+)(?P=quote)\])"""
)


def names_of(step: Mapping[str, Any]) -> set[str]:
    """Returns the names that the step adds to `steps`: its identifier, and `save_as`."""
    return {step["id"], *([step["save_as"]] if isinstance(step.get("save_as"), str) else [])}


def taken(definition: Mapping[str, Any]) -> set[str]:
    """Returns the identifiers and `save_as` names of the definition's steps."""
    return {name for placed in step_trees.walk(definition) for name in names_of(placed.step)}


def fresh(name: str, taken: Collection[str]) -> str:
    """Returns the name; if that is taken, with the lowest free number."""
    if name not in taken:
        return name
    stem, _, number = name.rpartition("_")
    if not (stem and number.isdigit()):
        stem = name
    numbers = range(2, len(taken) + 3)
    return next(each for each in (f"{stem[: LONGEST_ID - 5]}_{n}" for n in numbers) if each not in taken)


def uses(definition: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields (step, name) for each of the names that a step uses, in the order of the steps."""
    for placed in step_trees.walk(definition):
        yield from ((placed.step["id"], name) for name in sorted(_used(placed.step) & set(names)))


def rename(step: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns the step with its references renamed. Nested steps do not change."""
    renamed = _replaced(step_trees.own(step), lambda name: names.get(name, name))
    return {**step, **renamed} if not STEP_KINDS[step["kind"]].arms else dict(step)


def _used(step: Mapping[str, Any]) -> set[str]:
    used: dict[str, str] = {}
    _replaced(step_trees.own(step), lambda name: used.setdefault(name, name))
    return set(used)


def _replaced(step: Mapping[str, Any], new: Callable[[str], str]) -> dict[str, Any]:
    """Returns the step with the names in its templates, conditions and paths replaced by `new(name)`."""
    kind = STEP_KINDS[step["kind"]]

    def of_path(path: str) -> str:
        return _NAMED.sub(say, path) if path.startswith("steps") else path

    def of_template(text: str) -> str:
        return _TAG.sub(lambda tag: _NAMED.sub(say, tag[0]), text) if "steps" in text else text

    def say(found: re.Match[str]) -> str:
        if found["plain"] is not None:
            return f"steps.{new(found['plain'])}"
        return f"steps[{found['quote']}{new(found['quoted'])}{found['quote']}]"

    changed = dict(step)
    for name in kind.templates:
        if name in step:
            changed[name] = templated_values.with_texts(step[name], of_template)
    for name in (*kind.conditions, *(each for each in kind.trigger if each == "if")):
        if name in step:
            changed[name] = _condition(step[name], of_path)
    for name in kind.paths:
        if isinstance(step.get(name), str):
            changed[name] = of_path(step[name])
    return changed


def _condition(condition: Any, change: Callable[[str], str]) -> Any:
    if isinstance(condition, list):
        return [_condition(each, change) for each in condition]
    if not isinstance(condition, dict):
        return condition
    changed = {name: change(condition[name]) for name in ("field", "other") if isinstance(condition.get(name), str)}
    inner = {name: _condition(condition[name], change) for name in ("all", "any", "not") if name in condition}
    return condition | changed | inner
