"""Steps within steps do what the graph does from which they were made."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from app.domain.automations.definitions.json_schemas import DEEPEST
from app.domain.automations.imports.flow_graphs import Element, Graph, Link
from app.domain.automations.imports.nestings import nest
from app.domain.automations.imports.sources import Ledger, NameTable, Unreadable
from app.domain.triggers import conditions

MOST_SAID = 40


class Choices:
    """What is chosen at an element, each time anew, and the same for the graph and its steps."""

    def __init__(self, seed: int) -> None:
        self._seed, self._times = seed, Counter[str]()

    def next(self, key: str, links: int) -> int:
        self._times[key] += 1
        return random.Random(f"{self._seed} {key} {self._times[key]}").randrange(links)


def element(key: str, targets: Sequence[str | None], *, is_exclusive: bool = True) -> Element:
    """An element that says its key, and chooses one of the ways."""
    made = Element(
        key, f"The part {key}", [key], [{"id": key, "kind": "send_message", "text": f"{key}/{len(targets)}"}]
    )
    made.links = [
        Link(to, f"{key}>{number}", condition={"field": f"steps.{key}.choice", "is": "equals", "value": number})
        for number, to in enumerate(targets)
    ]
    if made.links:
        made.links[-1].condition = None
    made.shape, made.is_exclusive = "cases" if len(targets) > 1 else "go", is_exclusive
    return made


def graph_of(*elements: Element) -> Graph:
    return Graph(elements, elements[0].key)


def walk(graph: Graph, choices: Choices) -> list[str]:
    """What the graph says, until it ends."""
    said: list[str] = []
    key = graph.first
    while key is not None and len(said) < MOST_SAID:
        said.append(key)
        links = graph.elements[key].links
        to = links[choices.next(key, len(links))].to if links else None
        key = None if to is not None and (key, to) in graph.jumps else to
    return said


class Ended(Exception):
    """The run has ended."""


def play(steps: Sequence[Mapping[str, Any]], choices: Choices, said: list[str], known: dict[str, Any]) -> None:
    """Takes the steps as a run does, as far as these kinds go."""
    for step in steps:
        if step["kind"] == "send_message":
            key, links = step["text"].split("/")
            said.append(key)
            if len(said) == MOST_SAID:
                raise Ended
            known["steps"][step["id"]] = {"choice": choices.next(key, int(links)) if links != "0" else None}
        elif step["kind"] == "set_variable":
            known["run"]["variables"][step["name"]] = step["value"]
        elif step["kind"] == "branch":
            play(step.get("then" if conditions.holds(step["if"], known) else "else", ()), choices, said, known)
        elif step["kind"] == "repeat":
            for _ in range(step["times"]):
                if not conditions.holds(step["while"], known):
                    break
                play(step["steps"], choices, said, known)
        elif step["kind"] == "stop":
            raise Ended


def played(steps: Sequence[Mapping[str, Any]], choices: Choices) -> list[str]:
    said: list[str] = []
    with contextlib.suppress(Ended):
        play(steps, choices, said, {"steps": {}, "run": {"variables": {}}})
    return said


def nested(graph: Graph) -> tuple[list[dict[str, Any]], Ledger]:
    ledger = Ledger()
    return nest(graph, NameTable(), ledger).steps, ledger


def random_graph(seed: int) -> Graph:
    made = random.Random(seed)
    keys = [f"e{number}" for number in range(made.randint(1, 9))]
    targets = [[made.choice([*keys, None]) for _ in range(made.choice((0, 1, 1, 2, 2, 3, 6)))] for _ in keys]
    exclusive = made.random() < 0.5
    return graph_of(*(element(key, to, is_exclusive=exclusive) for key, to in zip(keys, targets, strict=True)))


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_steps_say_what_the_graph_says(first: int) -> None:
    compared = 0
    for seed in range(first, first + 60):
        graph = random_graph(seed)
        try:
            steps, ledger = nested(graph)
        except Unreadable:
            continue  # too many steps
        if any("levels deep" in entry.why for entry in ledger.lost):
            continue
        for run in range(5):
            assert played(steps, Choices(run)) == walk(graph, Choices(run)), seed
        compared += 1
    assert compared > 40


def test_ways_that_meet_again_go_on_below() -> None:
    steps, _ = nested(graph_of(element("a", ["b", "c"]), element("b", ["d"]), element("c", ["d"]), element("d", [])))

    assert [step["kind"] for step in steps] == ["send_message", "branch", "send_message"]
    assert steps[2]["text"] == "d/0"


def test_a_way_that_ends_stops_and_the_other_goes_on_below() -> None:
    steps, _ = nested(graph_of(element("a", ["b", "c"]), element("b", []), element("c", ["d"]), element("d", [])))

    assert [step["kind"] for step in steps] == ["send_message", "branch", "send_message", "send_message"]
    assert steps[1]["then"][-1]["kind"] == "stop"


def test_a_way_back_is_a_repeat_that_a_variable_ends() -> None:
    steps, ledger = nested(graph_of(element("ask", ["again", "done"]), element("again", ["ask"]), element("done", [])))

    assert [step["kind"] for step in steps] == ["set_variable", "repeat", "send_message"]
    assert "at most 100 times" in next(iter(ledger.lost)).why


def test_a_jump_into_the_middle_of_a_loop_is_noted() -> None:
    graph = graph_of(element("a", ["b", "c"]), element("b", ["c"]), element("c", ["b", "d"]), element("d", []))

    _, ledger = nested(graph)

    assert any("jumps into the middle of a loop" in entry.why for entry in ledger.lost)


def test_what_is_too_deep_is_noted() -> None:
    depth = DEEPEST + 2
    chain = [element(f"h{n}", [f"h{n + 1}", f"h{n - 1}" if n else None]) for n in range(depth)]

    _, ledger = nested(graph_of(*chain))

    assert any("levels deep" in entry.why for entry in ledger.lost)


def test_many_ways_that_meet_in_many_places_are_refused_rather_than_written_out() -> None:
    width = 12
    layers = [
        element(f"l{layer}n{number}", [f"l{layer + 1}n{(number * 5 + other) % width}" for other in range(4)])
        for layer in range(30)
        for number in range(width)
    ]

    with pytest.raises(Unreadable, match="more than 500 steps"):
        nested(graph_of(*layers))
