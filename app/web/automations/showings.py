"""Showings: what a picture shows besides the definition: counts, marks, problems, links to forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from app.web.automations.foldings import Folding
from app.web.automations.pictures import Branch, Edge

Way = tuple[str, str | None]  # a step and the key of a way on from it


class Edit(Protocol):
    """The addresses of forms, by which a picture is changed."""

    def add(self, place: str) -> str:
        """Where a step is added that will have this pointer."""

    def open(self, pointer: str) -> str:
        """The form of the step with this pointer; of `/triggers`, `/exits` and `/goal`, theirs."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The counts of a step. `waiting_at` and `failed_at`: the lists of exactly those runs, None where there is none."""

    entered: int
    left: int
    waiting: int
    failed: int
    waiting_at: str | None = None
    failed_at: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A word on a step, perhaps none, and its tone: `good`, `bad`, `busy`, `warn` or none. `at`: where more is said."""

    word: str
    tone: str = ""
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Trail:
    """The way of a run: the steps that it has reached, those that it has left, and the ways that it took."""

    reached: frozenset[str]
    left: frozenset[str]
    ways: frozenset[Way]

    def has(self, edge: Edge) -> bool:
        """Whether the run has gone along the line."""
        if edge.into is None and edge.after is None and edge.way is None:
            return False
        return (
            (edge.into is None or edge.into in self.reached)
            and (edge.after is None or edge.after in self.left)
            and (edge.way is None or edge.way in self.ways)
        )


@dataclass(frozen=True, slots=True)
class Showing:
    """What is shown on a picture and in its list. `problems` and `warnings`: sentences by the pointer of their step.

    `figures` and `marks` are by the step's identifier, `shares` by the way: how much of what left the step took it.
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
        """The share of the way, if it is counted."""
        return self.shares.get((branch.step_id, branch.key))
