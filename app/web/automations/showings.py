"""Showings: the counts, marks, problems and links to forms that a picture shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.web.automations.foldings import Folding
from app.web.automations.pictures import Branch, Edge

Way = tuple[str, str | None]  # a step's identifier, and the key of one of its branches


class Edit(Protocol):
    """The addresses of the forms that edit a picture."""

    def add(self, place: str) -> str:
        """Returns the address of the form that adds a step at this pointer."""

    def open(self, pointer: str) -> str:
        """Returns the address of the form of the step, `/triggers`, `/exits` or `/goal`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The counts of a step. `waiting_at`, `failed_at`: links to the runs that wait, or failed, there.

    None if there are no such runs.
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
class Trail:
    """The path of a run: the steps that it reached, the steps that it left, and the branches taken."""

    reached: frozenset[str]
    left: frozenset[str]
    ways: frozenset[Way]

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
class Showing:
    """The data shown on a picture. `problems`, `warnings`: sentences by the pointer of their step.

    `figures` and `marks` are by step. `shares`: for each branch, its share of the runs that left the step.
    """

    figures: Mapping[str, Figure] = field(default_factory=dict)
    shares: Mapping[Way, str] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)
    problems: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    folding: Folding | None = None
    edit: Edit | None = None
    trail: Trail | None = None

    def share(self, branch: Branch) -> str | None:
        """Returns the branch's share of the runs that left its step; None if it is not counted."""
        return self.shares.get((branch.step_id, branch.key))
