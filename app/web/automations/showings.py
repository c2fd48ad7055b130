"""Showings: the counts, marks, problems, folded steps and links to forms that a picture shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from flask import request

from app.web.automations.layouts import Branch, Edge
from app.web.lists import address

VIEWS = ("picture", "list")
# A picture of more than MANY_STEPS steps is folded from FIRST_LEVEL on, unless the address says otherwise.
MANY_STEPS, FIRST_LEVEL = 60, 1
MOST_TURNED = 60
_LEVEL = re.compile("all|[0-9]")
_TURNED = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})*")
BranchKey = tuple[str, str | None]  # a step's identifier, and the key of one of its branches


class Edit(Protocol):
    """The addresses of the forms that edit a picture."""

    def add(self, place: str) -> str:
        """Returns the address of the form that adds a step at this pointer."""

    def open(self, pointer: str) -> str:
        """Returns the address of the form of the step, `/triggers`, `/exits` or `/goal`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The counts of a step. `waiting_at`, `failed_at`: links to the runs that wait or failed there.

    A link is None if there are no such runs.
    """

    entered: int
    left: int
    waiting: int
    failed: int
    waiting_at: str | None = None
    failed_at: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A word on a step ("" for none). `tone`: `good`, `bad`, `busy`, `warn` or "".

    `at`: a link to details.
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
    """Which steps are folded: all from `level` on (None: none), with the exceptions in `turned`."""

    level: int | None
    turned: frozenset[str]

    def is_folded(self, step_id: str, level: int) -> bool:
        """Whether the steps inside this step are hidden. Levels count from 0."""
        return (self.level is not None and level >= self.level) != (step_id in self.turned)

    def turn(self, step_id: str) -> str:
        """Returns the address of this page with the step folded, or unfolded if it is folded now."""
        turned = sorted(self.turned ^ {step_id})[:MOST_TURNED]
        return address(turn=".".join(turned) or None) + f"#step-{step_id}"

    @property
    def fold_all(self) -> str:
        """Returns the address of this page with every step folded."""
        return address(fold="0", turn=None)

    @property
    def unfold_all(self) -> str:
        """Returns the address of this page with no step folded."""
        return address(fold="all", turn=None)


NOWHERE = FoldedSteps(None, frozenset())


@dataclass(frozen=True, slots=True)
class Showing:
    """The data shown on a picture. `problems`, `warnings`: sentences by the pointer of their step.

    `figures` and `marks` are by step. `shares`: for each branch, its share of the runs that left the step.
    """

    figures: Mapping[str, Figure] = field(default_factory=dict)
    shares: Mapping[BranchKey, str] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    problems: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    folded: FoldedSteps | None = None
    edit: Edit | None = None
    path: RunPath | None = None

    def share(self, branch: Branch) -> str | None:
        """Returns the branch's share of the runs that left its step; None if it is not counted."""
        return self.shares.get((branch.step_id, branch.key))


def read_folding(steps: int) -> FoldedSteps:
    """Reads which steps of a picture with `steps` steps are folded, from the address.

    `fold` is a level or `all`; `turn` lists the exceptions.
    """
    fold, turn = request.args.get("fold", ""), request.args.get("turn", "")
    turned = frozenset(turn.split(".")[:MOST_TURNED]) if _TURNED.fullmatch(turn) else frozenset()
    if not _LEVEL.fullmatch(fold):
        return FoldedSteps(FIRST_LEVEL if steps > MANY_STEPS else None, turned)
    return FoldedSteps(None if fold == "all" else int(fold), turned)


def view() -> str:
    """Returns which of VIEWS the address asks for; "" if none."""
    asked = request.args.get("view", "")
    return asked if asked in VIEWS else ""
