"""Moves: runs that wait go on with another version, none is lost, and none takes a step twice."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain import writes
from app.domain.automations import moves, version_counts
from app.domain.people import workspaces
from app.models.automations import Automation, AutomationVersion
from app.models.runs import Run
from tests.app.domain.automations.test_executions import make_contact, start, wake
from tests.automations import carry_on, make_automation
from tests.cast import accept, all_of, apply, elsewhere, one

pytestmark = pytest.mark.usefixtures("empty")

TAG = {"id": "tag", "kind": "add_tag", "tag": "old"}
WAIT = {"id": "pause", "kind": "wait", "seconds": 60}


@pytest.fixture
def workspace_id() -> str:
    return workspaces.create("Shop")[0].id


def publish(workspace_id: str, automation_id: str, *steps: dict[str, Any]) -> None:
    """Publishes these steps as version 2."""
    definition = {"triggers": [], "steps": list(steps)}
    AutomationVersion.insert(
        automation_id=automation_id, number=2, workspace_id=workspace_id, definition=definition
    ).execute()
    rows("UPDATE automations SET version = 2, latest_version = 2 WHERE id = %s", (automation_id,))


def move(workspace_id: str, automation_id: str, **fields: int) -> str:
    """Accepts the move and applies it; returns how it ended."""
    accept(workspace_id, "automations.move_runs", {"from_version": 1, "to_version": 2} | fields, automation_id)
    apply(workspace_id)
    return str(one("SELECT status FROM jobs WHERE kind = 'automations.move_runs' ORDER BY id DESC LIMIT 1"))


def waiting(workspace_id: str, number: int = 1) -> tuple[str, list[Run]]:
    """An automation with that many runs that wait, each of a contact of its own."""
    automation_id = make_automation(workspace_id, {"steps": [TAG, WAIT, TAG | {"id": "after", "tag": "from-1"}]})
    contacts = [make_contact(workspace_id, f"c{each}@example.com") for each in range(number)]
    runs = [start(workspace_id, automation_id, contact) for contact in contacts]
    carry_on(workspace_id)
    return automation_id, runs


def test_a_run_that_waits_goes_on_with_the_other_version_and_takes_no_step_again(workspace_id: str) -> None:
    automation_id, [run] = waiting(workspace_id)
    publish(workspace_id, automation_id, TAG | {"tag": "new"}, WAIT, TAG | {"id": "after", "tag": "from-2"})
    before = Run.get_by_id(run.id)

    assert move(workspace_id, automation_id) == "succeeded"
    moved = Run.get_by_id(run.id)
    assert (moved.version, moved.status, moved.step, moved.resume_at) == (2, "waiting", "pause", before.resume_at)
    wake(run)
    carry_on(workspace_id)

    assert sorted(one("SELECT tags FROM contacts")) == ["from-2", "old"]
    assert all_of("SELECT step FROM run_steps ORDER BY number") == ["tag", "pause", "pause", "after"]
    assert move(workspace_id, automation_id) == "succeeded"  # there is nothing left to move


def test_runs_whose_step_is_gone_or_of_another_kind_keep_their_version(workspace_id: str) -> None:
    automation_id, [run] = waiting(workspace_id)
    publish(workspace_id, automation_id, WAIT | {"id": "other"}, TAG | {"id": "pause"})
    automation = Automation.get_by_id(automation_id)

    assert moves.count(automation, 1, 2) == (0, 1)
    assert move(workspace_id, automation_id) == "succeeded"

    assert Run.get_by_id(run.id).version == 1


def test_the_count_is_exact_before_and_the_counts_of_both_versions_after(workspace_id: str) -> None:
    automation_id, [first, *_] = waiting(workspace_id, 3)
    publish(workspace_id, automation_id, WAIT)
    rows("UPDATE runs SET due_at = NULL WHERE id = %s", (first.id,))
    automation = Automation.get_by_id(automation_id)
    assert moves.count(automation, 1, 2) == (3, 0)

    move(workspace_id, automation_id)

    old, new = (version_counts.read(automation, version) for version in (1, 2))
    assert (old["runs"]["waiting"], new["runs"]["waiting"]) == (0, 3)
    assert old["steps"]["pause"] == {"entered": 3, "left": 0, "waiting": 0, "failed": 0}
    assert new["steps"]["pause"] == {"entered": 3, "left": 0, "waiting": 3, "failed": 0}
    assert moves.count(automation, 1, 2) == (0, 0)
    assert version_counts.unfinished(automation_id, [1, 2]) == {2: 3}


def test_a_run_whose_contact_is_held_by_another_is_moved_when_it_is_free(workspace_id: str) -> None:
    automation_id, runs = waiting(workspace_id, 2)
    publish(workspace_id, automation_id, WAIT)
    accept(workspace_id, "automations.move_runs", {"from_version": 1, "to_version": 2}, automation_id)
    with elsewhere(lambda: rows("SELECT FROM contacts WHERE id = %s FOR NO KEY UPDATE", (runs[0].contact_id,))):
        writes.work(workspace_id)
    assert Run.get_by_id(runs[0].id).version == 1

    apply(workspace_id)

    assert all_of("SELECT version FROM runs") == [2, 2]


@pytest.mark.parametrize(
    "fields",
    [{"from_version": 2}, {"from_version": 2, "to_version": 1}, {"from_version": 7}],
    ids=["the same", "backwards", "unknown"],
)
def test_a_move_to_anything_but_the_published_version_is_refused(workspace_id: str, fields: dict[str, int]) -> None:
    automation_id, [run] = waiting(workspace_id)
    publish(workspace_id, automation_id, WAIT)

    assert move(workspace_id, automation_id, **fields) == "failed"
    assert Run.get_by_id(run.id).version == 1


def test_more_runs_than_one_part_takes_are_all_moved(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.domain.automations.bulk_changes.PART", 2)
    automation_id, _ = waiting(workspace_id, 5)
    publish(workspace_id, automation_id, WAIT, TAG)

    assert move(workspace_id, automation_id) == "succeeded"

    assert all_of("SELECT version FROM runs") == [2] * 5
