"""Edits of definitions: inserted, changed, moved, removed and pasted steps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.domain.automations import definitions
from app.domain.automations.editing import edits, references, step_trees
from app.domain.automations.editing.step_trees import At
from app.domain.automations.steps import STEP_KINDS
from app.errors import Conflict, Invalid

HELLO: dict[str, Any] = {"id": "hello", "kind": "send_message", "text": "Hello"}


def definition() -> dict[str, Any]:
    """A question, a branch on its answer, and a split."""
    return {
        "triggers": [{"event": "tag.added", "tag": "vip"}],
        "steps": [
            {"id": "size", "kind": "ask", "text": "Which size?", "save_as": "chosen", "otherwise": []},
            {
                "id": "is_large",
                "kind": "branch",
                "if": {"any": [{"field": "steps.chosen", "is": "equals", "value": "steps.size"}]},
                "then": [{"id": "large", "kind": "send_message", "text": "steps.size is {{ steps.size.value }}"}],
            },
            {"id": "arms", "kind": "split", "arms": [{"name": "a", "percent": 50, "steps": [HELLO]}]},
        ],
    }


def ids_of(changed: Any) -> list[str]:
    return [placed.step["id"] for placed in step_trees.walk(changed)]


@pytest.mark.parametrize(
    ("pointer", "at"),
    [
        ("/steps/0", At()),
        ("/steps/3", At(after="arms")),
        ("/steps/1/then/1", At("is_large", "then", "large")),
        ("/steps/1/else/0", At("is_large", "else")),
        ("/steps/2/arms/0/steps/1", At("arms", "arm:a", "hello")),
    ],
)
def test_a_place_is_named_by_its_neighbours(pointer: str, at: At) -> None:
    assert step_trees.places(definition())[pointer] == at


def test_there_is_a_place_before_and_after_every_step() -> None:
    assert len(step_trees.places(definition())) == 4 + 1 + 2 + 1 + 2


@pytest.mark.parametrize("kind", STEP_KINDS)
def test_a_new_step_of_every_kind_stands_at_its_place(kind: str) -> None:
    step = edits.begun(kind, definition())

    changed = edits.insert(definition(), At("is_large", "else"), step)

    assert ids_of(changed) == ["size", "is_large", "large", *ids_of({"steps": [step]}), "arms", "hello"]
    assert step_trees.structure_faults(changed) == []


def test_a_step_is_inserted_at_the_end_if_its_neighbour_is_gone() -> None:
    changed = edits.insert(edits.remove(definition(), "large"), At("is_large", "then", "large"), {**HELLO, "id": "x"})

    assert ids_of(changed) == ["size", "is_large", "x", "arms", "hello"]


def test_a_change_leaves_the_steps_inside_and_takes_a_new_name_everywhere() -> None:
    changed = edits.change(definition(), "size", {"id": "fit", "kind": "ask", "text": "Which fit?"})

    assert changed["steps"][0] == {"id": "fit", "kind": "ask", "text": "Which fit?", "otherwise": []}
    # What only looks like a name is text.
    assert changed["steps"][1]["then"][0]["text"] == "steps.size is {{ steps.fit.value }}"
    assert changed["steps"][1]["if"] == {"any": [{"field": "steps.chosen", "is": "equals", "value": "steps.size"}]}


def test_an_arm_with_a_new_name_keeps_its_steps() -> None:
    arms = [{"name": "b", "was": "a", "percent": 40}, {"name": "c", "percent": 60}]

    changed = edits.change(definition(), "arms", {"id": "arms", "kind": "split", "arms": arms})

    assert changed["steps"][2]["arms"] == [
        {"name": "b", "percent": 40, "steps": [HELLO]},
        {"name": "c", "percent": 60, "steps": []},
    ]


def test_a_name_that_another_step_has_is_refused() -> None:
    with pytest.raises(Invalid):
        edits.change(definition(), "hello", {**HELLO, "id": "size"})


def test_a_step_moves_with_those_inside_it_but_not_into_itself() -> None:
    changed = edits.move(definition(), "is_large", At("arms", "arm:a", "hello"))

    assert ids_of(changed) == ["size", "arms", "hello", "is_large", "large"]
    with pytest.raises(Conflict):
        edits.move(definition(), "is_large", At("is_large", "then"))
    assert edits.move(definition(), "is_large", At(after="is_large")) == definition()
    assert ids_of(edits.move_by(definition(), "arms", -1)) == ["size", "arms", "hello", "is_large", "large"]
    assert edits.move_by(definition(), "arms", 1) == definition()


def test_a_pasted_step_has_names_of_its_own_also_inside() -> None:
    tag = {"id": "large", "kind": "add_tag", "tag": "{{ steps.size.value }} {{ steps['chosen'] }} {{ steps.other }}"}
    copied = {"id": "is_large", "kind": "branch", "then": [definition()["steps"][0], tag]}

    changed, identifier = edits.paste(definition(), At(after="arms"), copied)

    assert identifier == "is_large_2"
    pasted = changed["steps"][3]
    assert [each["id"] for each in pasted["then"]] == ["size_2", "large_2"]
    assert pasted["then"][0]["save_as"] == "chosen_2"
    assert pasted["then"][1]["tag"] == "{{ steps.size_2.value }} {{ steps['chosen_2'] }} {{ steps.other }}"
    assert step_trees.structure_faults(changed) == []


def test_what_a_removal_affects_is_named() -> None:
    assert sorted(edits.affected(definition(), "size")) == [("is_large", "chosen"), ("large", "size")]
    assert edits.affected(definition(), "is_large") == []
    assert list(references.uses(definition(), {"size"})) == [("large", "size")]


def test_a_trigger_is_found_by_what_it_was() -> None:
    before = step_trees.print_of(definition()["triggers"][0])

    assert edits.replace_trigger(definition(), None, {"event": "sale.recorded"})["triggers"][1:] == [
        {"event": "sale.recorded"}
    ]
    assert edits.replace_trigger(definition(), before, None)["triggers"] == []
    with pytest.raises(Conflict):
        edits.replace_trigger(definition(), "other", None)


@given(some.data())
def test_an_edit_leaves_a_definition_that_can_be_edited(data: some.DataObject) -> None:
    changed: dict[str, Any] = definition()
    for _ in range(data.draw(some.integers(1, 8))):
        placed = data.draw(some.sampled_from(list(step_trees.walk(changed)) or [None]))
        if placed is None:
            break
        at = placed.at if data.draw(some.booleans()) else At(after=placed.step["id"])
        match data.draw(some.sampled_from(("insert", "remove", "paste", "move"))):
            case "insert":
                kind = data.draw(some.sampled_from(list(STEP_KINDS)))
                changed = edits.insert(changed, at, edits.begun(kind, changed))
            case "remove":
                changed = edits.remove(changed, placed.step["id"])
            case "paste":
                changed, _ = edits.paste(changed, at, edits.copied(changed, placed.step["id"]))
            case "move":
                changed = edits.move_by(changed, placed.step["id"], data.draw(some.sampled_from((-1, 1))))
    assert step_trees.structure_faults(changed) == []
    assert isinstance(definitions.faults(changed), list)
