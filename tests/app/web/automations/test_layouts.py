"""The layout of pictures: nothing overlaps, the line of a list stays, and every place for a step is there."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from app.domain.automations.steps import STEP_KINDS
from app.web.automations import layouts
from app.web.automations.layouts import Picture

MARK = {"kind": "add_tag", "tag": "vip"}
IS_VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}


def step(number: int | str, **fields: Any) -> dict[str, Any]:
    return {"id": f"s{number}", **(fields or MARK)}


def branch(number: int | str, then: list[Any], otherwise: list[Any]) -> dict[str, Any]:
    return {"id": f"b{number}", "kind": "branch", "if": IS_VIP, "then": then, "else": otherwise}


def nested(depth: int) -> list[dict[str, Any]]:
    if not depth:
        return [step(f"{depth}-end")]
    inner = nested(depth - 1)
    return [
        {"id": f"r{depth}", "kind": "repeat", "times": 2, "steps": [branch(depth, inner, [step(f"{depth}-else")])]},
        step(f"{depth}-after"),
    ]


def of_every_kind() -> dict[str, Any]:
    return {
        "steps": [
            {"id": f"k{n}", "kind": kind, **STEP_KINDS[kind].example} for n, kind in enumerate(sorted(STEP_KINDS))
        ]
    }


def drawn(definition: dict[str, Any], **options: Any) -> Picture:
    return layouts.draw(definition, {}, **options)


@pytest.mark.parametrize(
    "definition",
    [
        {"steps": []},
        {"steps": [step(1), step(2)]},
        {"steps": [branch(1, [step(1)], [branch(2, [step(3)], [step(4)])]), step(5)]},
        {"steps": nested(9)},
        of_every_kind(),
    ],
    ids=["none", "flat", "branches", "deep", "every kind"],
)
@pytest.mark.parametrize("has_figures", [False, True])
def test_no_box_overlaps_another_and_all_are_in_the_picture(definition: dict[str, Any], has_figures: bool) -> None:
    found = drawn(definition, has_figures=has_figures, exits=[{"event": "sale.recorded"}], goal=None)

    boxes = [*found.heads, *found.nodes, *found.labels]
    for one, other in combinations(boxes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y, (one, other)
    for each in boxes:
        assert each.x >= 0
        assert each.y >= 0
        assert each.x + each.width <= found.width
        assert each.y + each.height <= found.height
    for frame in found.frames:
        assert frame.x >= 0
        assert frame.x + frame.width <= found.width


def test_steps_of_a_list_stand_on_one_line_whatever_stands_beside_it() -> None:
    found = drawn({"steps": [step(1), branch(1, nested(3), [branch(2, [], [step(3)])]), step(2)]})

    assert len({node.x for node in found.roots}) == 1
    assert [node.id for node in found.roots] == ["s1", "b1", "s2"]


def test_every_place_at_which_a_step_can_be_inserted_has_a_gap() -> None:
    arms = [{"name": name, "percent": 50, "steps": [step(name)]} for name in "xy"]
    ask = {"id": "ask", "kind": "ask", "text": "Well?"}
    found = drawn({"steps": [branch(1, [step(1)], []), {"id": "a", "kind": "split", "arms": arms}, ask]})

    assert sorted(gap.place for gap in found.gaps) == sorted(
        [
            *("/steps/0", "/steps/1", "/steps/2", "/steps/3"),
            *("/steps/0/then/0", "/steps/0/then/1", "/steps/0/else/0", "/steps/2/otherwise/0"),
            *("/steps/1/arms/0/steps/0", "/steps/1/arms/0/steps/1"),
            *("/steps/1/arms/1/steps/0", "/steps/1/arms/1/steps/1"),
        ]
    )


def test_each_step_has_its_pointer() -> None:
    found = drawn({"steps": [step(0), branch(1, [step(1)], [step(2)])]})

    assert {node.id: node.pointer for node in found.nodes} == {
        "s0": "/steps/0",
        "b1": "/steps/1",
        "s1": "/steps/1/then/0",
        "s2": "/steps/1/else/0",
    }


def test_what_stands_inside_a_folded_step_is_counted_and_not_drawn() -> None:
    definition = {"steps": [branch(1, [step(1), branch(2, [step(3)], [])], [step(4)]), step(5)]}

    found = drawn(definition, is_folded=lambda step_id, level: step_id == "b1")

    assert [node.id for node in found.nodes] == ["b1", "s5"]
    assert (found.nodes[0].is_folded, found.nodes[0].inside, found.steps) == (True, 4, 6)
    assert not found.labels


def test_nothing_leads_on_from_a_stop() -> None:
    stop = {"id": "stop", "kind": "stop"}

    found = drawn({"steps": [branch(1, [stop], [stop | {"id": "other"}]), step(1)]})

    assert not [edge for edge in found.edges if edge.into == "s1"]
    assert found.end is not None or not found.end  # the picture is drawn all the same
    assert drawn({"steps": [stop]}).end is None


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"steps": None},
        {"steps": [{}, {"kind": "branch"}, {"kind": "split", "arms": 3}, "what", None]},
        {"steps": [{"id": 1, "kind": "repeat", "steps": [7]}], "triggers": [3, {}]},
    ],
)
def test_a_definition_with_faults_is_drawn_all_the_same(definition: dict[str, Any]) -> None:
    assert drawn(definition).width > 0


@pytest.mark.parametrize(
    ("pointer", "owner"),
    [
        ("/steps/2/then/0/text", "/steps/2/then/0"),
        ("/steps/2/arms/1/steps/0/if/all/0/field", "/steps/2/arms/1/steps/0"),
        ("/steps/2/arms/1/percent", "/steps/2"),
        ("/steps/3/if/all/0/value", "/steps/3"),
        ("/steps/0/buttons/1/label", "/steps/0"),
        ("/steps/4/otherwise/1", "/steps/4/otherwise/1"),
        ("/triggers/0/if", "/triggers"),
        ("/steps", "/steps"),
        ("", ""),
    ],
)
def test_a_pointer_belongs_to_the_step_that_it_leads_into(pointer: str, owner: str) -> None:
    assert layouts.owner_of(pointer) == owner
