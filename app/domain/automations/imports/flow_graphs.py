"""Flow graphs: another product's flow as connected elements, and its loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.imports.sources import Work

Step = dict[str, Any]
# A temporary member of a step: the part of the imported file that it comes from. Removed when the step is nested.
SOURCE = "_source"


@dataclass(slots=True)
class Link:
    """A connection to the element `to` (None: to the end). `source`: its identifier in the file.

    `condition`: None for the connection that is taken if no other condition holds. `steps`: taken on the way.
    """

    to: str | None
    source: str | None = None
    where: str = ""
    condition: Mapping[str, Any] | None = None
    percent: float = 0
    name: str = ""
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Element:
    """A piece of a flow: consecutive steps, and the connections from them.

    `shape`: how a run takes a connection. With `go`, the only one, if any. With `cases`, the first whose condition
    holds; the last one has no condition. With `split`, one at random, by `percent`. With `otherwise`, the first one is
    the last step's `otherwise`, and the second continues. `sources`: the source parts that the element stands for.
    `is_exclusive`: at most one condition can hold.
    """

    key: str
    where: str
    sources: Sequence[str] = ()
    steps: list[Step] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    shape: str = "go"
    is_exclusive: bool = False


@dataclass(slots=True)
class Loop:
    """Elements that lead back to `head`, which every path into the loop passes."""

    head: str
    body: frozenset[str]
    parent: Loop | None = None


class Graph:
    """A flow as a graph of elements by key. `first`: the element it begins with; None if unknown.

    `work` counts the elements and connections that are visited, because a small flow can have exponentially many paths.
    Functions that walk the graph raise Unreadable if this exceeds the bound.
    """

    def __init__(self, elements: Iterable[Element], first: str | None) -> None:
        self.work = Work()
        self.elements = {each.key: each for each in elements}
        self.first = first if first in self.elements else None
        for each in self.elements.values():
            for link in each.links:
                if link.to not in self.elements:
                    link.to = None
        self.order: list[str] = []  # reverse postorder: each element precedes the elements it leads to forwards
        self.place: dict[str, int] = {}
        # Connections that lead backwards: to the head of their loop, or to any other element.
        self.back: set[tuple[str, str]] = set()
        self.jumps: set[tuple[str, str]] = set()
        self.loops: dict[str, Loop] = {}
        self._forward: dict[str, list[str]] = {}
        if self.first is not None:
            self._walk(self.first)
            self._find_loops(self.first)

    def forward(self, key: str) -> list[str]:
        """Returns the elements that `key` leads to, without backward connections."""
        if key not in self._forward:
            found = dict.fromkeys(link.to for link in self.elements[key].links if link.to is not None)
            self._forward[key] = [to for to in found if (key, to) not in self.back and (key, to) not in self.jumps]
        return self._forward[key]

    def reach(self, start: str | None, without: str | None = None) -> set[str]:
        """Returns the elements reachable forwards from `start` (included), without passing `without`."""
        seen: set[str] = set()
        pending = [start] if start is not None and start != without else []
        while pending:
            key = pending.pop()
            if key not in seen:
                seen.add(key)
                links = self.forward(key)
                self.work.spend(1 + len(links))
                pending += [to for to in links if to != without]
        return seen

    def _walk(self, first: str) -> None:
        state = {first: 1}
        stack = [(first, iter([link.to for link in self.elements[first].links]))]
        backwards: set[tuple[str, str]] = set()
        while stack:
            key, links = stack[-1]
            to = next(links, "")
            if to == "":
                stack.pop()
                state[key] = 2
                self.order.append(key)
            elif to is not None and state.get(to) == 1:
                backwards.add((key, to))
            elif to is not None and to not in state:
                state[to] = 1
                stack.append((to, iter([link.to for link in self.elements[to].links])))
        self.order.reverse()
        self.place = {key: number for number, key in enumerate(self.order)}
        self.back = backwards

    def _find_loops(self, first: str) -> None:
        """Finds the loops. Backward connections that do not end a loop are jumps."""
        dominators = self._dominators(first, self._before())
        self.jumps = {(key, head) for key, head in self.back if not self._is_above(head, key, dominators)}
        self.back -= self.jumps
        before, bodies = self._before(), dict[str, set[str]]()
        for key, head in sorted(self.back):
            body, pending = bodies.setdefault(head, {head}), [key]
            while pending:
                each = pending.pop()
                if each not in body:
                    body.add(each)
                    self.work.spend(1 + len(before[each]))
                    pending += before[each]
        loops = [Loop(head, frozenset(body)) for head, body in bodies.items()]
        for loop in loops:
            self.work.spend(len(loops))
            around = [other for other in loops if other is not loop and loop.head in other.body]
            loop.parent = min(around, key=lambda other: len(other.body), default=None)
            self.loops[loop.head] = loop

    def _before(self) -> dict[str, list[str]]:
        before: dict[str, list[str]] = {key: [] for key in self.order}
        for key in self.order:
            for link in self.elements[key].links:
                if link.to is not None and (key, link.to) not in self.jumps:
                    before[link.to].append(key)
        return before

    def _dominators(self, first: str, before: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Returns each element's immediate dominator (Cooper, Harvey and Kennedy, 2001)."""
        above = {first: first}
        changed = True
        while changed:
            changed = False
            for key in self.order[1:]:
                nearest: str | None = None
                self.work.spend(1 + len(before[key]))
                for each in before[key]:
                    if each in above:
                        nearest = each if nearest is None else self._meet(each, nearest, above)
                if nearest is not None and above.get(key) != nearest:
                    above[key] = nearest
                    changed = True
        return above

    def _meet(self, one: str, other: str, above: Mapping[str, str]) -> str:
        while one != other:
            while self.place[one] > self.place[other]:
                self.work.spend(1)
                one = above[one]
            while self.place[other] > self.place[one]:
                self.work.spend(1)
                other = above[other]
        return one

    def _is_above(self, head: str, key: str, above: Mapping[str, str]) -> bool:
        while key != head:
            self.work.spend(1)
            if above[key] == key:
                return False
            key = above[key]
        return True
