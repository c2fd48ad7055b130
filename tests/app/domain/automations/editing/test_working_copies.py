"""Working copies: two editors, undo and redo, and drafts that cannot run yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from app.domain.automations.editing import clipboards, edits, step_trees, working_copies
from app.domain.automations.editing.step_trees import At
from app.domain.automations.editing.working_copies import Change
from app.errors import Conflict, Invalid
from app.models.automations import Automation
from tests.automations import make_automation
from tests.cast import Api, one

ADA, BEN = "mem_ada", "mem_ben"
HELLO = {"id": "hello", "kind": "send_message", "text": "Hello"}
BYE = {"id": "bye", "kind": "send_message", "text": "Bye"}


@pytest.fixture
def automation(api: Api) -> Automation:
    return Automation.get_by_id(make_automation(api.workspace_id, {"triggers": [], "steps": [HELLO, BYE]}))


def writing(step: Mapping[str, Any], text: str) -> Change:
    return lambda definition: edits.change(definition, step["id"], {**step, "text": text})


def texts(definition: Mapping[str, Any]) -> list[str]:
    return [step["text"] for step in definition["steps"]]


def stored(automation: Automation) -> Automation:
    return Automation.get_by_id(automation.id)


def test_edits_of_two_people_both_count(automation: Automation) -> None:
    working_copies.edit(automation, ADA, "changed “hello”", writing(HELLO, "Hi"))
    copy = working_copies.edit(automation, BEN, "changed “bye”", writing(BYE, "Goodbye"))

    assert texts(copy.definition) == ["Hi", "Goodbye"]
    assert copy.definition == stored(automation).definition
    last = working_copies.last_change(automation, "hello")
    assert last is not None
    assert (last.actor_id, last.done) == (ADA, "changed “hello”")
    hello = working_copies.step_with(automation, "hello", step_trees.print_of(HELLO))
    assert hello == HELLO


def test_a_draft_that_cannot_run_is_kept_beside_the_definition(automation: Automation) -> None:
    copy = working_copies.edit(automation, ADA, "changed “hello”", writing(HELLO, ""))

    assert [fault.pointer for fault in copy.faults] == ["/steps/0/text"]
    assert texts(working_copies.current(stored(automation)).definition) == ["", "Bye"]
    assert texts(stored(automation).definition) == ["Hello", "Bye"]
    with pytest.raises(Conflict, match="a problem"):
        working_copies.check_publishable(stored(automation))
    working_copies.edit(automation, BEN, "changed “hello”", writing(HELLO, "Hi"))
    assert texts(stored(automation).definition) == ["Hi", "Bye"]
    working_copies.check_publishable(stored(automation))


def test_what_cannot_be_edited_is_not_kept(automation: Automation) -> None:
    with pytest.raises(Invalid):
        working_copies.edit(automation, ADA, "", lambda _: {"steps": [{"id": "x", "kind": "nonsense"}]})
    assert working_copies.current(automation).revision == 0


def test_changes_are_undone_and_redone(automation: Automation) -> None:
    working_copies.edit(automation, ADA, "first", writing(HELLO, "1"))
    copy = working_copies.edit(automation, BEN, "second", writing(HELLO, "2"))
    assert copy.undoes is not None
    assert (copy.undoes.actor_id, copy.undoes.done) == (BEN, "second")

    copy = working_copies.undo(automation, copy.revision)
    assert copy.redoes is not None
    assert copy.redoes.done == "second"
    copy = working_copies.undo(automation, copy.revision)
    assert texts(copy.definition) == ["Hello", "Bye"]
    assert copy.undoes is None
    with pytest.raises(Conflict, match="nothing"):
        working_copies.undo(automation, copy.revision)
    copy = working_copies.redo(automation, copy.revision)
    assert texts(copy.definition) == texts(stored(automation).definition) == ["1", "Bye"]
    copy = working_copies.edit(automation, ADA, "third", writing(HELLO, "3"))
    assert copy.redoes is None


def test_nobody_undoes_what_they_have_not_seen(automation: Automation) -> None:
    seen = working_copies.edit(automation, ADA, "first", writing(HELLO, "1")).revision
    working_copies.edit(automation, BEN, "second", writing(BYE, "2"))

    with pytest.raises(Conflict, match="has changed since"):
        working_copies.undo(automation, seen)


def test_what_the_api_changes_becomes_a_state_and_can_be_undone(automation: Automation) -> None:
    working_copies.edit(automation, ADA, "first", writing(HELLO, ""))
    Automation.update(definition={"steps": [BYE]}).where(Automation.id == automation.id).execute()

    assert texts(working_copies.current(stored(automation)).definition) == ["Bye"]
    copy = working_copies.edit(stored(automation), ADA, "second", writing(BYE, "2"))
    copy = working_copies.undo(stored(automation), copy.revision)
    assert copy.undoes is not None
    assert copy.undoes.done == working_copies.CHANGED_ELSEWHERE
    assert texts(working_copies.undo(stored(automation), copy.revision).definition) == ["", "Bye"]


def test_what_one_types_is_one_state(automation: Automation) -> None:
    for text in ("H", "He", "Hey"):
        copy = working_copies.edit(automation, ADA, "typed", writing(HELLO, text), is_typing=True)
    copy = working_copies.edit(automation, BEN, "typed", writing(HELLO, "Hey!"), is_typing=True)

    assert texts(working_copies.undo(automation, copy.revision).definition) == ["Hey", "Bye"]
    assert one("SELECT count(*) FROM working_copy_states") == 3


def test_only_the_latest_states_are_kept(automation: Automation) -> None:
    for number in range(working_copies.MOST_STATES + 5):
        copy = working_copies.edit(automation, ADA, "", writing(HELLO, str(number)))
    assert one("SELECT count(*) FROM working_copy_states") == working_copies.MOST_STATES

    long = "x" * (working_copies.MOST_STATE_BYTES // 20)
    for number in range(25):
        copy = working_copies.edit(automation, ADA, "", writing(HELLO, f"{number} {long}"[: 400 * 1024]))
    assert one("SELECT sum(bytes) FROM working_copy_states") <= working_copies.MOST_STATE_BYTES
    assert copy.undoes is not None


def test_a_step_is_pasted_into_another_automation_of_the_workspace(api: Api, automation: Automation) -> None:
    clipboards.put(automation, ADA, HELLO, is_cut=False)
    clipboards.put(automation, ADA, BYE, is_cut=False)
    other = Automation.get_by_id(make_automation(api.workspace_id))

    held = clipboards.of(api.workspace_id, ADA)
    assert held is not None
    copy = working_copies.edit(other, ADA, "pasted", lambda it: edits.paste(it, At(), held.step)[0])

    assert [step["id"] for step in copy.definition["steps"]] == ["bye", "end"]
    assert clipboards.of(api.workspace_id, BEN) is None
