"""Pictures: the boxes, lines and labels of a drawn definition. All lengths are in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH = 264  # pixels of a box
LABEL, LABEL_WIDTH = 26, 196  # pixels: height and width of a branch's label


@dataclass(slots=True)
class Branch:
    """A path out of a step. `label` and `words`: its text, in short and in full.

    `place`: the JSON pointer of the branch's list of steps; None for the path around the nested steps.
    """

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
    """A box. `inside`: how many steps are nested in it, which are hidden if it is folded.

    `kind`: the step's kind; or `triggers`, `exits` or `goal`, which have `lines`.
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
        """Describes the step in one line."""
        return f"{self.title}: {self.detail}" if self.detail else self.title


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where a step can be inserted: its pointer, and the centre of the `+`."""

    place: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A line, as an SVG path, from the step `after` to the step `into`.

    `way`: the step and key of the branch that it follows. Each is None if the line has none.
    """

    path: str
    after: str | None = None
    into: str | None = None
    way: tuple[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """A border around repeated steps."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Picture:
    """A drawn definition. `nodes`: all boxes of steps in order; `roots`: the boxes on the top level."""

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
    steps: int = 0  # the number of steps, hidden ones included
