"""Counts: exact at any moment, whoever adds them up and however often, and at a cost that runs do not raise."""

from __future__ import annotations

from functools import partial

import pytest

from app.domain.automations import counts
from app.lib import ids
from app.models.automations import AutomationDelta
from tests.automations import make_automation
from tests.cast import Api, elsewhere, in_threads, one


@pytest.fixture
def automation_id(api: Api) -> str:
    return make_automation(api.workspace_id)


def add(automation_id: str, key: str, *amounts: int) -> None:
    for amount in amounts:
        AutomationDelta.insert(
            id=ids.new("dlt"), workspace_id="ws", automation_id=automation_id, key=key, amount=amount
        ).execute()


def test_an_automation_without_runs_counts_nothing(automation_id: str) -> None:
    assert counts.of([automation_id]) == {automation_id: {}}
    assert set(counts.runs_by_status([automation_id])[automation_id].values()) == {0}
    assert counts.refused(automation_id) == {}


def test_counts_are_the_same_before_while_and_after_they_are_added_up(automation_id: str) -> None:
    add(automation_id, "queued", 1, 1, 1, -1)
    add(automation_id, "completed", 1)

    read = []
    for _ in range(6):
        read.append(counts.of([automation_id])[automation_id])
        counts.fold(limit=1)

    assert read == [{"queued": 2, "completed": 1}] * 6
    assert one("SELECT count(*) FROM automation_deltas") == 0
    assert counts.fold() == 0


def test_counts_are_read_by_what_they_mean(automation_id: str, api: Api) -> None:
    other_id = make_automation(api.workspace_id)
    add(automation_id, "waiting", 3)
    add(automation_id, "refused:reentry", 2)
    add(other_id, "waiting", 9)

    assert counts.runs_by_status([automation_id, other_id])[automation_id] == {
        **{"queued": 0, "running": 0, "waiting": 3, "held": 0},
        **{"completed": 0, "failed": 0, "cancelled": 0},
    }
    assert counts.refused(automation_id) == {"reentry": 2}


def test_several_schedulers_add_each_change_up_once(automation_id: str, api: Api) -> None:
    other_id = make_automation(api.workspace_id)
    for number in range(40):
        add([automation_id, other_id][number % 2], f"refused:{number % 5}", 1)

    folded = in_threads([partial(counts.fold, 3)] * 20)

    assert sum(folded) == 40
    assert [sum(each.values()) for each in counts.of([automation_id, other_id]).values()] == [20, 20]


def test_adding_up_does_not_wait_for_changes_that_another_scheduler_has_taken(automation_id: str) -> None:
    add(automation_id, "queued", 1)
    add(automation_id, "completed", 1)

    with elsewhere(lambda: counts.fold(1)):
        assert counts.fold() == 1

    assert counts.of([automation_id])[automation_id] == {"queued": 1, "completed": 1}


def test_what_was_counted_of_a_deleted_automation_is_dropped(api: Api) -> None:
    add("aut_gone", "queued", 1)

    assert counts.fold() == 1

    assert one("SELECT count(*) FROM automation_counts") == 0
