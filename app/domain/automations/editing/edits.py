"""Edits: changes to a definition.

An edit returns a new definition, and does not modify its argument. Identifiers name steps, and an At names a place, so
an edit finds its step whatever others have changed. An edit raises Conflict if its step or place is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from app.domain.automations.editing import references, step_trees
from app.domain.automations.editing.step_trees import At
from app.domain.automations.steps import STEP_KINDS
from app.errors import Conflict, Fault, Invalid

Definition = Mapping[str, Any]


def begun(kind: str, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a new step for its author to complete. Raises KeyError for an unknown kind."""
    entry, taken = STEP_KINDS[kind].entry, references.taken(definition)
    lists: dict[str, list[Any]] = {name: [] for name in STEP_KINDS[kind].lists}
    return {"id": references.fresh(entry.id or kind, taken), "kind": kind, **deepcopy(dict(entry.members)), **lists}


def insert(definition: Definition, at: At, step: Mapping[str, Any]) -> dict[str, Any]:
    """Inserts the step at the place; at the end of the list if the step that it follows is gone."""
    changed = deepcopy(dict(definition))
    _put(changed, at, deepcopy(dict(step)))
    return changed


def change(definition: Definition, step_id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces the members of the step. Nested steps stay.

    A new `id` also replaces the old one where other steps name it. An arm with a new name keeps its steps if its `was`
    is the old name. Raises Invalid if another step has the identifier.
    """
    changed = deepcopy(dict(definition))
    step: Any = step_trees.find(changed, step_id).step
    kind = STEP_KINDS[step["kind"]]
    kept = {name: step[name] for name in kind.lists if name in step}
    made = deepcopy(dict(fields))
    if kind.arms and kind.arms in made:
        before = {arm["name"]: arm.get("steps", []) for arm in step.get(kind.arms, [])}
        made[kind.arms] = [_arm(arm, before) for arm in made[kind.arms]]
    if made["id"] != step_id and any(each.step["id"] == made["id"] for each in step_trees.walk(changed)):
        raise Invalid(Fault("/id", f"Another step is called '{made['id']}'."))
    step.clear()
    step.update({**made, **kept})
    return _renamed(changed, {step_id: made["id"]}) if made["id"] != step_id else changed


def remove(definition: Definition, step_id: str) -> dict[str, Any]:
    """Removes the step and its nested steps."""
    changed = deepcopy(dict(definition))
    _take(changed, step_id)
    return changed


def move(definition: Definition, step_id: str, at: At) -> dict[str, Any]:
    """Moves the step with its nested steps. Raises Conflict if the place is inside the step."""
    moved = step_trees.find(definition, step_id).step
    inside = {each.step["id"] for each in step_trees.walk({"steps": [moved]})}
    if at.owner in inside:
        raise Conflict("A step cannot be moved into itself.")
    if at.after == step_id:
        return deepcopy(dict(definition))
    changed = deepcopy(dict(definition))
    _put(changed, at, _take(changed, step_id))
    return changed


def move_by(definition: Definition, step_id: str, by: int) -> dict[str, Any]:
    """Moves the step up (-1) or down (1) within its list, if possible."""
    changed = deepcopy(dict(definition))
    listed = step_trees.list_at(changed, step_trees.find(changed, step_id).at)
    index = [each["id"] for each in listed].index(step_id)
    listed.insert(max(0, index + by), listed.pop(index))
    return changed


def copied(definition: Definition, step_id: str) -> dict[str, Any]:
    """Returns a copy of the step and its nested steps, for a clipboard."""
    return deepcopy(dict(step_trees.find(definition, step_id).step))


def paste(definition: Definition, at: At, step: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Inserts a copy of the step; returns the definition and the copy's identifier.

    Identifiers that are taken are replaced, also where steps of the copy refer to each other.
    """
    taken, names = references.taken(definition), dict[str, str]()
    for each in step_trees.walk({"steps": [step]}):
        new = sorted(references.names_of(each.step) - names.keys())
        names |= {name: references.fresh(name, taken | set(names.values())) for name in new}
    tree = _renamed({"steps": [deepcopy(dict(step))]}, names)
    for placed in list(step_trees.walk(tree)):
        inner: Any = placed.step
        inner["id"] = names[inner["id"]]
        if inner.get("save_as") in names:
            inner["save_as"] = names[inner["save_as"]]
    return insert(definition, at, tree["steps"][0]), tree["steps"][0]["id"]


def affected(definition: Definition, step_id: str) -> list[tuple[str, str]]:
    """Returns (step, name) for other steps that use results of the step or of its nested steps."""
    tree = {"steps": [step_trees.find(definition, step_id).step]}
    inside = {each.step["id"] for each in step_trees.walk(tree)}
    names = {name for each in step_trees.walk(tree) for name in references.names_of(each.step)}
    return [(user, name) for user, name in references.uses(definition, names) if user not in inside]


def replace_trigger(
    definition: Definition, print_before: str | None, trigger: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Replaces the trigger with the fingerprint `print_before`, or removes it if `trigger` is None.

    If `print_before` is None, adds `trigger`. Raises Conflict if no trigger has the fingerprint.
    """
    changed = deepcopy(dict(definition))
    triggers: list[Any] = changed.setdefault("triggers", [])
    if print_before is None:
        triggers.append(trigger)
        return changed
    for index, each in enumerate(triggers):
        if step_trees.print_of(each) == print_before:
            triggers[index : index + 1] = [] if trigger is None else [trigger]
            return changed
    raise Conflict("Somebody else has changed or removed this trigger meanwhile. Look at the triggers as they are now.")


def changed_steps(before: Definition, after: Definition) -> list[str]:
    """Returns the identifiers of added, removed and changed steps, in no particular order."""
    was, now = _owns(before), _owns(after)
    return [identifier for identifier in {**was, **now} if was.get(identifier) != now.get(identifier)]


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Sequence[tuple[str, Any, Any]]:
    """Returns (name, before, after) for members of two steps that differ; None for missing values."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [(name, before.get(name), after.get(name)) for name in names]


def _owns(definition: Definition) -> dict[str, Any]:
    return {each.step["id"]: step_trees.own(each.step) for each in step_trees.walk(definition)}


def _put(definition: Any, at: At, step: dict[str, Any]) -> None:
    listed = step_trees.list_at(definition, at)
    places = {each["id"]: index + 1 for index, each in enumerate(listed)}
    listed.insert(places.get(at.after, len(listed)) if at.after is not None else 0, step)


def _take(definition: Any, step_id: str) -> dict[str, Any]:
    listed = step_trees.list_at(definition, step_trees.find(definition, step_id).at)
    taken: dict[str, Any] = listed.pop([each["id"] for each in listed].index(step_id))
    return taken


def _arm(arm: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    was = arm.pop("was", arm["name"])
    return {**arm, "steps": before.get(was, [])}


def _renamed(definition: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    for placed in list(step_trees.walk(definition)):
        step: Any = placed.step
        step.update(references.rename(step, names))
    return definition
