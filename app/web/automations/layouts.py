"""Layouts: computes where the steps of a definition are drawn, as boxes, lines and labels.

The steps of a list are drawn below one another, on a vertical line that does not depend on what is beside it. Branches
are drawn side by side: the first on that line, the others to its right. All lengths are in pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.triggers import plain_words
from app.domain.triggers.plain_words import Given, Names
from app.web.automations import wordings
from app.web.automations.wordings import BranchWords

WIDTH = 264  # pixels of a box
LABEL, LABEL_WIDTH = 26, 196  # pixels: height and width of a branch's label
MARGIN = 24
GAP = 34  # pixels between boxes, with room for a `+`
_BESIDE = 36  # pixels between branches
_FRAME = 16  # pixels between repeated steps and the sides of their frame
_TITLE, _LINE, _CHIPS, _FIGURES, _PADDING = 20, 18, 26, 26, 18  # heights in pixels
_CHARACTERS = 38  # characters in a line of details, approximately
_TITLE_CHARACTERS, _MARK_CHARACTERS = 24, 8  # the most characters in a line of a title, and the room that a mark takes
MOST_LINES = 5  # the most lines of a box at the top


@dataclass(slots=True)
class Branch:
    """A branch of a step, and the box of its label. `label`, `words`: its text, in short and in full.

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
    """The box of a step. `inside`: how many steps are nested in it, which are hidden if it is folded.

    `kind`: the step's kind; for a box at the top, `triggers`, `exits` or `goal`, with a sentence in each of `lines`.
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
        """The title and the detail, in one line."""
        return f"{self.title}: {self.detail}" if self.detail else self.title


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where a step can be inserted: its pointer, and the centre of the `+`."""

    place: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A line between the steps `after` and `into`, as an SVG path. `way`: step and key of its branch.

    Each is None if the line does not begin at a step, end at a step, or belong to a branch.
    """

    path: str
    after: str | None = None
    into: str | None = None
    way: tuple[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The border around the steps that a `repeat` step repeats."""

    x: float
    y: float
    width: float
    height: float


@dataclass(slots=True)
class Picture:
    """A drawn definition. `nodes`: the boxes of all visible steps; `roots`: of outer steps only.

    `heads`: the boxes of triggers, exits and goal. `end`: where “End” is written; None if no run gets there.
    """

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


@dataclass(frozen=True, slots=True)
class _Reached:
    """Where a part of a picture ends. `goes_on`: whether runs continue there; `last`: its last step."""

    bottom: float
    right: float
    goes_on: bool = True
    last: str | None = None


def draw(
    definition: Given,
    names: Names,
    *,
    exits: Sequence[Given] = (),
    goal: Given | None = None,
    is_folded: Callable[[str, int], bool] = lambda step_id, level: False,
    has_figures: bool = False,
    has_marks: bool = False,
) -> Picture:
    """Draws a definition, even one with faults. `names`: the names of resources, by identifier.

    `is_folded(step_id, level)`: whether the step's nested steps are hidden; the level of outer steps is 0. With
    `has_figures`, boxes have room for counts; with `has_marks`, room for a word beside the title.
    """
    return _Drawing(names, is_folded, has_figures, has_marks).draw(definition, exits, goal)


def owner_of(pointer: str) -> str:
    """Returns the pointer of the innermost step, or of another part, that a pointer leads into.

    For `/steps/2/then/0/text`, it is `/steps/2/then/0`; for `/triggers/0/if`, `/triggers`; for "", "".
    """
    parts = pointer.split("/")[1:]
    if not parts or parts[0] != "steps":
        return f"/{parts[0]}" if parts else ""
    end = 2
    for at in range(2, len(parts)):
        if parts[at].isdigit() and parts[at - 1] in ("steps", "then", "else", "otherwise"):
            end = at + 1
    return "/" + "/".join(parts[:end])


def count(steps: Sequence[Given]) -> int:
    """Counts the steps, nested ones included, and without anything that is not a step."""
    return _Steps().count(steps)


class _Steps:
    """Caches the branches of steps, and how many steps are nested in them, by `id` of the step."""

    def __init__(self) -> None:
        self._ways: dict[int, Sequence[BranchWords]] = {}
        self._inside: dict[int, int] = {}

    def ways(self, step: Given) -> Sequence[BranchWords]:
        if id(step) not in self._ways:
            self._ways[id(step)] = wordings.ways(step)
        return self._ways[id(step)]

    def inside(self, step: Given) -> int:
        if id(step) not in self._inside:
            self._inside[id(step)] = sum(self.count(way.steps) for way in self.ways(step))
        return self._inside[id(step)]

    def count(self, steps: Sequence[Given]) -> int:
        return sum(1 + self.inside(each) for each in steps if isinstance(each, dict))


class _Drawing:
    """Draws one definition. `picture`: the boxes, lines and labels so far."""

    def __init__(self, names: Names, is_folded: Callable[[str, int], bool], has_figures: bool, has_marks: bool) -> None:
        self.picture = Picture()
        self._steps = _Steps()
        self._names = names
        self._is_folded = is_folded
        self._has_figures = has_figures
        self._has_marks = has_marks

    def draw(self, definition: Given, exits: Sequence[Given], goal: Given | None) -> Picture:
        picture, steps = self.picture, wordings.objects_of(definition.get("steps") or ())
        picture.steps = self._steps.count(steps)
        x = MARGIN + self._left_of(steps)
        bottom, right = self._heads(x - WIDTH / 2, definition.get("triggers") or (), exits, goal)
        reached = self._list(steps, "/steps", picture.roots, x, bottom, 0)
        if reached.goes_on:
            picture.end = (x, reached.bottom)
        picture.width = max(right, reached.right) + MARGIN
        picture.height = reached.bottom + 28 + MARGIN
        return picture

    def _heads(
        self, x: float, triggers: Sequence[Given], exits: Sequence[Given], goal: Given | None
    ) -> tuple[float, float]:
        """Draws the boxes at the top: triggers, and beside them exits and the goal.

        Returns the bottom of the triggers, and the right end of all boxes.
        """
        lines = self._lines(triggers) or ["Only when it is started by hand or by the API"]
        heads = [Node("triggers", "triggers", "/triggers", "Starts when", lines=lines, icon="play")]
        if exits:
            lines = self._lines(exits)
            heads.append(Node("exits", "exits", "/exits", "Ends early when", lines=lines, icon="log-out"))
        if goal:
            heads.append(Node("goal", "goal", "/goal", "Goal", lines=[plain_words.goal(goal)], icon="flag"))
        for number, head in enumerate(heads):
            head.x, head.y = x + number * (WIDTH + _BESIDE), MARGIN
            rows = sum(2 if len(line) > _CHARACTERS - 2 else 1 for line in head.lines)
            head.height = _PADDING + _TITLE + _LINE * rows + 2
        self.picture.heads = heads
        return MARGIN + heads[0].height, heads[-1].x + WIDTH

    def _lines(self, triggers: Sequence[Any]) -> list[str]:
        lines = [plain_words.trigger(each, self._names) for each in wordings.objects_of(triggers)]
        more = len(lines) - MOST_LINES + 1
        return [*lines[: MOST_LINES - 1], f"and {more} more"] if more > 1 else lines

    def _list(
        self,
        steps: Sequence[Given],
        at: str,
        into: list[Node],
        x: float,
        y: float,
        level: int,
        way: tuple[str, str | None] | None = None,
    ) -> _Reached:
        reached, after = _Reached(y, x + WIDTH / 2 if steps else x + LABEL_WIDTH / 2), None
        for index, given in enumerate(steps):
            top = reached.bottom + GAP
            node = self._node(given, f"{at}/{index}", level)
            self.picture.gaps.append(Gap(f"{at}/{index}", x, reached.bottom + GAP / 2))
            if reached.goes_on:
                lead = way if index == 0 else None
                self.picture.edges.append(Edge(f"M{x:g},{reached.bottom:g}V{top:g}", after, node.id, lead))
            into.append(node)
            found = self._step(node, given, x, top, level)
            goes_on = found.goes_on and reached.goes_on
            reached, after = _Reached(found.bottom, max(reached.right, found.right), goes_on, node.id), node.id
        self.picture.gaps.append(Gap(f"{at}/{len(steps)}", x, reached.bottom + GAP / 2))
        bottom = reached.bottom + GAP
        if reached.goes_on:
            lead = None if steps else way
            self.picture.edges.append(Edge(f"M{x:g},{reached.bottom:g}V{bottom:g}", after, None, lead))
        return _Reached(bottom, reached.right, reached.goes_on, after)

    def _node(self, given: Given, pointer: str, level: int) -> Node:
        words, kind = wordings.step(given, self._names), str(given.get("kind"))
        identifier = given["id"] if isinstance(given.get("id"), str) else pointer
        inside, icon = self._steps.inside(given), wordings.icon_of(kind)
        node = Node(identifier, kind, pointer, words.title, words.detail, words.chips, icon=icon, inside=inside)
        node.is_folded = inside > 0 and self._is_folded(identifier, level)
        return node

    def _step(self, node: Node, given: Given, x: float, y: float, level: int) -> _Reached:
        """Draws a step at x, from y downwards, and its branches below; returns their extent."""
        lines = min(2, -(-len(node.detail) // _CHARACTERS))
        room = _TITLE_CHARACTERS - _MARK_CHARACTERS * self._has_marks - 3 * (node.inside > 0)
        titles = 2 if len(node.title) > room else 1
        node.x, node.y = x - WIDTH / 2, y
        node.height = _PADDING + _TITLE * titles + _LINE * lines + _CHIPS * bool(node.chips)
        node.height += _FIGURES * self._has_figures + _FIGURES * node.is_folded
        self.picture.nodes.append(node)
        bottom = y + node.height
        ways = () if node.is_folded else self._steps.ways(given)
        if not ways:
            return _Reached(bottom, x + WIDTH / 2, node.kind != "stop")
        node.branches = [
            Branch(node.id, way.key, way.label, way.words, None if way.place is None else node.pointer + way.place)
            for way in ways
        ]
        if node.kind == "repeat":
            return self._repeated(node, ways[0], x, bottom, level)
        return self._side_by_side(node, ways, x, bottom, level)

    def _repeated(self, node: Node, way: BranchWords, x: float, y: float, level: int) -> _Reached:
        left = self._left_of(way.steps, level + 1) + _FRAME
        branch, top = node.branches[0], y + 12
        self._label(branch, x, top + 6)
        lead = (node.id, branch.key)
        self.picture.edges.append(Edge(f"M{x:g},{y:g}V{branch.y:g}", node.id, None, lead))
        begun = branch.y + LABEL
        reached = self._list(way.steps, str(branch.place), branch.nodes, x, begun, level + 1, lead)
        right = max(reached.right, x + WIDTH / 2) + _FRAME
        self.picture.frames.append(Frame(x - left, top - 2, right - x + left, reached.bottom - top + 2))
        # The next step follows the last round. A run that stops within a round never gets there.
        return _Reached(reached.bottom, right)

    def _side_by_side(self, node: Node, ways: Sequence[BranchWords], x: float, y: float, level: int) -> _Reached:
        """Draws a step's branches side by side; they join again below."""
        columns, right = [], x - WIDTH / 2
        for number, (way, branch) in enumerate(zip(ways, node.branches, strict=True)):
            left = self._left_of(way.steps, level + 1) if way.steps else LABEL_WIDTH / 2
            at = x if number == 0 else right + _BESIDE + left
            self._label(branch, at, y + 26)
            lead = (node.id, branch.key)
            self.picture.edges.append(Edge(_fork(x, y, at, branch.y), node.id, None, lead))
            if way.place is None:
                reached = _Reached(branch.y + LABEL, at + LABEL_WIDTH / 2)
            else:
                place = str(branch.place)
                reached = self._list(way.steps, place, branch.nodes, at, branch.y + LABEL, level + 1, lead)
            columns.append((at, reached, lead))
            right = max(reached.right, at + LABEL_WIDTH / 2)
        meet = max(reached.bottom for _, reached, _ in columns) + 10
        for at, reached, lead in columns:
            if reached.goes_on:
                path = _meet(at, reached.bottom, x, meet)
                self.picture.edges.append(Edge(path, reached.last, None, lead))
        return _Reached(meet, max(right, x + WIDTH / 2), any(reached.goes_on for _, reached, _ in columns))

    def _left_of(self, steps: Sequence[Given], level: int = 0) -> float:
        """Returns how far a list of steps extends to the left of its line: further for each nested frame."""
        return max([WIDTH / 2, *(self._left(each, level) for each in steps)])

    def _left(self, step: Given, level: int) -> float:
        """Like `_left_of`, for one step and its first branch, which is drawn on the step's line."""
        ways = self._steps.ways(step)
        if not ways or (self._steps.inside(step) and self._is_folded(str(step.get("id")), level)):
            return 0
        return self._left_of(ways[0].steps, level + 1) + _FRAME * (step.get("kind") == "repeat")

    def _label(self, branch: Branch, x: float, y: float) -> None:
        branch.x, branch.y = x - branch.width / 2, y
        self.picture.labels.append(branch)


def _fork(x: float, y: float, at: float, below: float) -> str:
    """Returns the path from a step down, to the right, and down to a branch's label."""
    if at == x:
        return f"M{x:g},{y:g}V{below:g}"
    return f"M{x:g},{y:g}V{y + 4:g}q0,8 8,8H{at - 8:g}q8,0 8,8V{below:g}"


def _meet(at: float, bottom: float, x: float, meet: float) -> str:
    """Returns the path from the end of a branch down, and left to the line of its step."""
    if at == x:
        return f"M{x:g},{bottom:g}V{meet:g}"
    return f"M{at:g},{bottom:g}V{meet - 8:g}q0,8 -8,8H{x:g}"
