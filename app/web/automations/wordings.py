"""Wordings: describes a definition's steps and branches in plain words, even if it has faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import Words
from app.domain.triggers.plain_words import Given, Names


@dataclass(frozen=True, slots=True)
class BranchWords:
    """A branch of a step. `label` describes it in a few words, `words` in full.

    `key`: its key in counts; None for the path around the nested steps. `place`: the JSON pointer of its list of steps,
    relative to the step.
    """

    key: str | None
    label: str
    words: str
    place: str | None = None
    steps: Sequence[Given] = field(default=())


def step(given: Given, names: Names) -> Words:
    """Describes a step. If it has faults or an unknown kind, names at least the kind."""
    kind = given.get("kind")
    try:
        return STEP_KINDS[str(kind)].words(given, names)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return Words(str(kind or "A step without a kind").replace("_", " ").capitalize()[:100])


def icon_of(kind: str) -> str:
    """Returns the name of the kind's icon; that of an alert for an unknown kind."""
    return STEP_KINDS[kind].entry.icon if kind in STEP_KINDS else "circle-alert"


def ways(given: Given) -> list[BranchWords]:
    """Returns the branches of a step; [] if its kind has no steps inside, or the step has faults."""
    try:
        kind = STEP_KINDS[given["kind"]]
        inside = [(key, place, steps) for key, place, steps in kind.inside(given) if isinstance(steps, list)]
        found = [BranchWords(key, *kind.way(given, key), place, objects_of(steps)) for key, place, steps in inside]
    except (KeyError, TypeError, AttributeError):
        return []
    return [BranchWords(None, *kind.past), *found] if kind.past else found


def objects_of(given: Sequence[Any]) -> list[Given]:
    """Replaces anything that is not an object with {}, so that positions stay the same."""
    return [each if isinstance(each, dict) else {} for each in given]
