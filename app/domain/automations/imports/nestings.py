"""Nestings: converts a graph's elements to nested steps, the form of our definitions.

Branches that join again continue below the step that splits them. A loop becomes a `repeat`, which a variable ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.automations.definitions.json_schemas import DEEPEST, MOST_STEPS
from app.domain.automations.imports.flow_graphs import SOURCE, Element, Graph, Link, Loop, Step
from app.domain.automations.imports.sources import Ledger, NameTable, Unreadable
from app.domain.automations.steps.repeat import MOST_ROUNDS

_AGAIN = "again"
_TRIED = 8  # the most elements to try as a join of branches
_NESTED = 4  # the most conditions nested in the `else` of each other
_TOO_DEEP = f"What follows is nested more than {DEEPEST} levels deep."
_LOOK = 10  # cost of visiting an element again, and of each connection from it
_CHARACTERS = 20  # characters of text that are searched at the cost of one element
_NAMED = re.compile(r"\bsteps\.([A-Za-z0-9_]+)")


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a list of steps. `falls`: the element that follows the list; None for the end.

    `exits`: by element that follows the loop, the value of the loop's variable that leads to it.
    """

    level: int = 1
    falls: str | None = None
    loop: Loop | None = None
    variable: str = ""
    exits: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Nesting:
    """The steps of a graph. `kept`: the source parts of all elements and connections followed.

    `sources`: the source parts of each step, and where these are, by the step's identifier.
    """

    steps: list[Step] = field(default_factory=list)
    sources: dict[str, tuple[Sequence[str], str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)


def nest(graph: Graph, names: NameTable, ledger: Ledger) -> Nesting:
    """Converts the graph to nested steps. Notes in the ledger the parts that cannot be nested.

    Raises Unreadable above MOST_STEPS, and if it takes more work than COMPUTING_PER_IMPORT.
    """
    making = _Making(graph, names, ledger)
    if graph.first is not None:
        making.nesting.steps = making.sequence(graph.first, _Place())
    return making.nesting


class _Making:
    """Converts one graph. Keeps the nesting so far, and the identifiers that its steps were given."""

    def __init__(self, graph: Graph, names: NameTable, ledger: Ledger) -> None:
        self.nesting = Nesting()
        self._graph, self._names, self._ledger = graph, names, ledger
        self._renamed: dict[str, str] = {}
        self._by_id: dict[str, Step] = {}
        self._reached: dict[tuple[str | None, str | None], set[str]] = {}

    def sequence(self, to: str | None, place: _Place, *, is_head: bool = False) -> list[Step]:
        """Returns the steps from the element `to` on, until the end or the `falls` of the place."""
        steps: list[Step] = []
        while True:
            self._graph.work.spend(_LOOK)
            if to is None:
                return steps if place.falls is None else [*steps, self._step({"kind": "stop"}, "end")]
            if to == place.falls and not is_head:
                return steps
            if place.loop and to not in place.loop.body:
                number = place.exits.setdefault(to, len(place.exits) + 1)
                return [*steps, self._set(place.variable, str(number))]
            if to in self._graph.loops and not is_head:
                element = self._loop(self._graph.loops[to], place, steps)
            else:
                element = self._graph.elements[to]
                steps += self._fresh(element.steps, element)
                self.nesting.kept.update(element.sources)
            is_head = False
            made, to, goes_on = self._on(element, place)
            steps += made
            if not goes_on:
                return steps

    def _on(self, element: Element, place: _Place) -> tuple[list[Step], str | None, bool]:
        """Returns the steps of an element's branches, the next element, and whether any branch continues."""
        self._graph.work.spend(_LOOK * len(element.links))
        links = [self._followed(element, link) for link in element.links]
        if (element.shape == "cases" and len(links) == 1) or element.shape == "go":
            return (self._fresh(links[0].steps, element), links[0].to, True) if links else ([], None, True)
        if element.shape == "otherwise":
            return self._otherwise(element, links, place)
        joint = self._joint(links, place)
        inner = place if joint is None else replace(place, falls=joint)
        if element.shape == "split":
            return self._split(element, links, inner), joint, joint is not None
        return self._cases(element, links, inner), joint, joint is not None

    def _loop(self, loop: Loop, place: _Place, steps: list[Step]) -> Element:
        """Adds a loop's `repeat` to the steps; returns an element with the connections out of the loop."""
        head = self._graph.elements[loop.head]
        variable = self._names.fresh("loop")
        inner = _Place(place.level + 1, loop.head, loop, variable, {})
        self._ledger.lose(head.key, head.where, f"A loop begins here. It is repeated at most {MOST_ROUNDS} times.")
        steps.append(self._set(variable, _AGAIN))
        repeat = self._step({"kind": "repeat", "times": MOST_ROUNDS, "while": _is(variable, _AGAIN)}, "loop")
        steps.append(repeat)
        if inner.level > DEEPEST:
            repeat["steps"] = []
            self._ledger.lose(head.key, head.where, _TOO_DEEP)
            return Element(head.key, head.where)
        repeat["steps"] = self.sequence(loop.head, inner, is_head=True)
        links = [Link(to, condition=_is(variable, str(number))) for to, number in inner.exits.items()]
        if links:
            links[-1].condition = None
        return Element(loop.head, head.where, links=links, shape="cases" if links else "go", is_exclusive=True)

    def _otherwise(self, element: Element, links: list[Link], place: _Place) -> tuple[list[Step], str | None, bool]:
        late, on = links
        step = self._renamed[element.steps[-1]["id"]]
        if on.steps or not self._is_clean([late], on.to, place):
            condition = {"field": f"steps.{step}.timed_out", "is": "equals", "value": True}
            parted = Element(element.key, element.where, links=[replace(late, condition=condition), on], shape="cases")
            return self._on(parted, place)
        arm = self._arm(late, replace(place, falls=on.to), 1, element)
        self._by_id[step]["otherwise"] = arm
        return [], on.to, True

    def _split(self, element: Element, links: list[Link], place: _Place) -> list[Step]:
        arms = [
            {"name": link.name, "percent": link.percent, "steps": self._arm(link, place, 1, element)} for link in links
        ]
        return [self._step({"kind": "split", "arms": arms}, "split")]

    def _cases(self, element: Element, links: list[Link], place: _Place) -> list[Step]:
        """Returns branches that make a run take the first connection whose condition holds."""
        *some, last = links
        conditions = [self._renaming(link.condition) for link in some]
        if len(some) <= (_NESTED if place.level <= DEEPEST // 2 else 1):
            return self._nested(element, links, conditions, place)
        decided: list[Step] = []
        if not element.is_exclusive:
            variable = self._names.fresh("way")
            decided.append(self._set(variable, "0"))
            for number, condition in enumerate(conditions, 1):
                free = {"all": [_is(variable, "0"), condition]}
                chosen = [self._set(variable, str(number))]
                decided.append(self._step({"kind": "branch", "if": free, "then": chosen}, "decide"))
            conditions = [_is(variable, str(number)) for number in range(1, len(some) + 1)]
        steps = []
        for link, condition in zip(some, conditions, strict=True):
            if arm := self._arm(link, place, 1, element):
                steps.append(self._step({"kind": "branch", "if": condition, "then": arm}, "if"))
        if arm := self._arm(last, place, 1, element):
            steps.append(self._step({"kind": "branch", "if": {"not": {"any": conditions}}, "then": arm}, "else"))
        return [*decided, *steps] if steps else []

    def _nested(self, element: Element, links: list[Link], conditions: Sequence[Any], place: _Place) -> list[Step]:
        arms = [self._arm(link, place, min(number, len(links) - 1), element) for number, link in enumerate(links, 1)]
        steps = arms[-1]
        for condition, arm in reversed(list(zip(conditions, arms, strict=False))):
            if arm or steps:
                steps = [self._step({"kind": "branch", "if": condition, "then": arm, "else": steps}, "if")]
        return steps

    def _arm(self, link: Link, place: _Place, levels: int, element: Element) -> list[Step]:
        """Returns the steps of a connection, `levels` deeper. Below DEEPEST, notes the loss; returns []."""
        level = place.level + levels
        if level > DEEPEST:
            self._ledger.lose(link.source or element.key, link.where or element.where, _TOO_DEEP)
            return []
        return [*self._fresh(link.steps, element), *self.sequence(link.to, replace(place, level=level))]

    def _followed(self, element: Element, link: Link) -> Link:
        """Returns the connection. A jump, for which there is no step, leads nowhere instead."""
        if link.source is not None:
            self.nesting.kept.add(link.source)
        if link.to is None or (element.key, link.to) not in self._graph.jumps:
            return link
        to = self._graph.elements[link.to].where
        why = f"It jumps into the middle of a loop, to {to}. The run ends here instead."
        self._ledger.lose(link.source or element.key, link.where or element.where, why)
        return replace(link, to=None)

    def _joint(self, links: Sequence[Link], place: _Place) -> str | None:
        """Returns the element where connections join, or which the only long one leads to; else None."""
        reached = {to: self._reach(to, place.falls) for to in dict.fromkeys(link.to for link in links)}
        times: dict[str, int] = {}
        for to, number in Counter(link.to for link in links).items():
            self._graph.work.spend(len(reached[to]))
            for key in reached[to]:
                if not place.loop or key in place.loop.body:
                    times[key] = times.get(key, 0) + number
        shared = sorted((key for key in times if times[key] > 1), key=lambda key: (-times[key], self._graph.place[key]))
        longest = max(reached, key=lambda to: len(reached[to]))
        for key in [*shared[:_TRIED], *([longest] if longest in times else [])]:
            if key != place.falls and self._is_clean(links, key, place):
                return key
        return None

    def _is_clean(self, links: Iterable[Link], joint: str | None, place: _Place) -> bool:
        """Whether steps may follow below the branches: each leads to `joint`, or to an end."""
        begins = list(dict.fromkeys(link.to for link in links if link.to is not None))
        region = set[str]()
        for to in begins:
            reached = self._reach(to, joint)
            self._graph.work.spend(len(reached))
            region |= reached
        pairs = [("", to) for to in begins]
        for key in region:
            targets = [link.to for link in self._graph.elements[key].links if link.to is not None]
            self._graph.work.spend(len(targets))
            pairs += [(key, to) for to in targets]
        for key, to in pairs:
            if to == joint or (key, to) in self._graph.jumps:
                continue
            if to == place.falls or (place.loop and to not in place.loop.body):
                return False
            if (key, to) in self._graph.back and to not in region:
                return False
        return True

    def _reach(self, start: str | None, without: str | None) -> set[str]:
        if (start, without) not in self._reached:
            self._reached[start, without] = self._graph.reach(start, without)
        return self._reached[start, without]

    def _set(self, variable: str, value: str) -> Step:
        return self._step({"kind": "set_variable", "name": variable, "value": value}, f"set_{variable}")

    def _fresh(self, steps: Sequence[Step], element: Element) -> list[Step]:
        """Returns copies of the steps. A step that the nesting already contains gets a new identifier."""
        for step in steps:
            is_new = step["id"] not in self._by_id
            self._renamed[step["id"]] = step["id"] if is_new else self._names.fresh(step["id"])
        made = []
        for step in steps:
            fields = {name: self._renaming(value) for name, value in step.items() if name not in ("id", SOURCE)}
            made.append(self._step({"id": self._renamed[step["id"]], **fields}, ""))
            sources = (step[SOURCE],) if SOURCE in step else element.sources
            self.nesting.sources[made[-1]["id"]] = (sources, element.where)
        return made

    def _step(self, fields: Mapping[str, Any], wanted: str) -> Step:
        if len(self._by_id) == MOST_STEPS:
            raise Unreadable(
                f"This would have more than {MOST_STEPS} steps. What is reached in several ways counts each time."
            )
        step = dict(fields) if "id" in fields else {"id": self._names.fresh(wanted), **fields}
        self._by_id[step["id"]] = step
        return step

    def _renaming(self, value: Any) -> Any:
        """Returns the JSON value with new identifiers in its names of results (`steps.<id>`)."""
        if isinstance(value, str):
            self._graph.work.spend(1 + len(value) // _CHARACTERS)
            return _NAMED.sub(lambda found: f"steps.{self._renamed.get(found[1], found[1])}", value)
        if isinstance(value, list):
            return [self._renaming(each) for each in value]
        return {name: self._renaming(each) for name, each in value.items()} if isinstance(value, dict) else value


def _is(variable: str, value: str) -> dict[str, Any]:
    return {"field": f"run.variables.{variable}", "is": "equals", "value": value}
