"""Showings: the counts, marks, problems, folded steps and links to forms that a picture shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import request

from app.domain.triggers.plain_words import Given
from app.web.automations.layouts import Edge, count
from app.web.lists import address

VIEWS = ("picture", "list")
# A picture of more than MANY_STEPS steps is folded from FIRST_LEVEL on, unless the address says otherwise.
MANY_STEPS, FIRST_LEVEL = 60, 1
MOST_TURNED = 60
_LEVEL = re.compile("all|[0-9]")
_TURNED = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})*")
BranchKey = tuple[str, str | None]  # a step's identifier, and the key of one of its branches


@dataclass(frozen=True, slots=True)
class Mark:
    """A word on a step ("" for none). `tone`: its colour: `good`, `bad`, `busy`, `warn` or "".

    `at`: the address of details, for a link in the step's title.
    """

    word: str
    tone: str = ""
    at: str | None = None


@dataclass(frozen=True, slots=True)
class RunPath:
    """The path of a run: the steps that it reached, the steps that it left, and the branches taken."""

    reached: frozenset[str]
    left: frozenset[str]
    ways: frozenset[BranchKey]

    def has(self, edge: Edge) -> bool:
        """Whether the run followed the line."""
        if edge.into is None and edge.after is None and edge.way is None:
            return False
        return (
            (edge.into is None or edge.into in self.reached)
            and (edge.after is None or edge.after in self.left)
            and (edge.way is None or edge.way in self.ways)
        )


@dataclass(frozen=True, slots=True)
class FoldedSteps:
    """Which steps are folded: all from `level` on (None: none). For steps in `turned`, the opposite."""

    level: int | None = None
    turned: frozenset[str] = frozenset()

    def is_folded(self, step_id: str, level: int) -> bool:
        """Whether the steps inside this step are hidden. Levels count from 0."""
        return (self.level is not None and level >= self.level) != (step_id in self.turned)

    def turn(self, step_id: str) -> str:
        """Returns the address of this page with the step folded, or unfolded if it is folded now."""
        turned = sorted(self.turned ^ {step_id})[:MOST_TURNED]
        return address(turn=".".join(turned) or None) + f"#step-{step_id}"


@dataclass(frozen=True, slots=True)
class Showing:
    """The data that a picture shows on its steps. `problems`, `warnings`: sentences by pointer.

    `figures`, `marks`: by the step's identifier. `shares`: each branch's share of the runs that left the step.
    `folded`: None if steps can be neither folded nor unfolded. `edit`: the editor's Addresses; None outside the editor.
    """

    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shares: Mapping[BranchKey, str] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    problems: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    folded: FoldedSteps | None = None
    edit: Any = None
    path: RunPath | None = None


def read_folding(definition: Given) -> FoldedSteps:
    """Reads from the address which steps of the definition are folded.

    `fold`: the level from which on they are, or `all` if none is; `turn`: the exceptions. Without `fold`, only
    definitions of more than MANY_STEPS steps are folded.
    """
    fold, turn = request.args.get("fold", ""), request.args.get("turn", "")
    turned = frozenset(turn.split(".")[:MOST_TURNED]) if _TURNED.fullmatch(turn) else frozenset()
    if not _LEVEL.fullmatch(fold):
        return FoldedSteps(FIRST_LEVEL if count(definition.get("steps") or ()) > MANY_STEPS else None, turned)
    return FoldedSteps(None if fold == "all" else int(fold), turned)


def view() -> str:
    """Returns which of VIEWS the address asks for; "" if the width of the window should decide."""
    asked = request.args.get("view", "")
    return asked if asked in VIEWS else ""
