"""Pictures: the boxes, lines and labels that a definition is drawn with. All lengths are in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH = 264  # of a box
LABEL, LABEL_WIDTH = 26, 196  # height and width of a branch's label


@dataclass(slots=True)
class Branch:
    """A way on from a step, with the steps on it. `place`: of its list; None for the way past the steps inside."""

    step_id: str
    key: str | None
    label: str
    words: str
    place: str | None
    x: float = 0
    y: float = 0
    width: float = LABEL_WIDTH
    height: float = LABEL
    nodes: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Node:
    """A box. `inside`: how many steps stand inside it, which do not show if it is folded.

    `kind`: that of the step, or `triggers`, `exits` or `goal`, which have `lines`.
    """

    id: str
    kind: str
    pointer: str
    title: str
    detail: str = ""
    chips: Sequence[str] = ()
    lines: Sequence[str] = ()
    icon: str = "circle"
    inside: int = 0
    is_folded: bool = False
    x: float = 0
    y: float = 0
    width: float = WIDTH
    height: float = 0
    branches: list[Branch] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The step in one line."""
        return f"{self.title}: {self.detail}" if self.detail else self.title


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a step can be inserted: the pointer that it would have, and the middle of the `+`."""

    place: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A line, as the path of an SVG: from the step `after` to the step `into`, on a way of a step.

    `way`: the step that it is a way of, and the key. None: it leads from, to or along none.
    """

    path: str
    after: str | None = None
    into: str | None = None
    way: tuple[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A border around what is repeated."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Picture:
    """A definition, drawn. `nodes` are the boxes of steps in the order of the definition, `roots` those not inside."""

    nodes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)
    heads: list[Node] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    labels: list[Branch] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    end: tuple[float, float] | None = None
    width: float = 0
    height: float = 0
    steps: int = 0  # with those that are folded
