"""Contacts with very many unfinished runs become one: the runs follow in parts, and none is lost, kept out or freed."""

from __future__ import annotations

import pytest

from app.database import rows
from app.domain.lifecycle import merges
from app.domain.triggers import run_states
from app.models.automations import Enrolment
from app.models.runs import Run
from tests.app.domain.lifecycle.merging import merge_at_once
from tests.app.domain.triggers.triggering import BYE, VIP, adding, do, make_contact, start_of
from tests.automations import carry_on, make_automation
from tests.cast import Api

STEPS = [{"id": "rest", "kind": "wait", "seconds": 3600}, {"id": "mark", "kind": "add_tag", "tag": "done"}]
RUNS = 5


@pytest.fixture
def automation_id(api: Api, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(merges, "AT_ONCE", 1)
    monkeypatch.setattr(merges, "PART", 2)
    definition = {"triggers": [VIP], "steps": STEPS}
    return make_automation(api.workspace_id, definition, exits=[BYE], reentry="after_finish")


@pytest.fixture
def kept_id(api: Api) -> str:
    return make_contact(api.workspace_id)


@pytest.fixture
def other_id(api: Api, automation_id: str) -> str:
    """A contact with runs that wait."""
    contact_id = make_contact(api.workspace_id)
    start = start_of(api.workspace_id, contact_id, automation_id)
    do(api.workspace_id, contact_id, *[lambda unit: run_states.begin(unit, start)] * RUNS)
    carry_on(api.workspace_id)
    return contact_id


def owners() -> dict[str, int]:
    return dict(rows("SELECT contact_id, count(*) FROM runs WHERE finished_at IS NULL GROUP BY 1"))


def active(contact_id: str, automation_id: str) -> int:
    return int(Enrolment.get_by_id(Enrolment.id_of(contact_id, automation_id)).active)


def fall_due() -> None:
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE finished_at IS NULL RETURNING 1")


def test_runs_follow_in_parts(api: Api, kept_id: str, other_id: str, automation_id: str) -> None:
    merge_at_once(api, kept_id, other_id)

    assert owners() == {kept_id: 1, other_id: RUNS - 1}
    assert active(kept_id, automation_id) == RUNS

    api.apply()
    assert owners() == {kept_id: RUNS}
    assert {claim for (claim,) in rows("SELECT claim FROM runs")} == {2}, "whoever has claimed them must notice"
    assert not rows("SELECT 1 FROM pending_merges")


def test_a_run_that_is_due_before_it_has_followed_goes_on_with_the_kept_contact(
    api: Api, kept_id: str, other_id: str, automation_id: str
) -> None:
    merge_at_once(api, kept_id, other_id)
    fall_due()
    carry_on(api.workspace_id)

    assert {(run.status, run.contact_id) for run in Run.select()} == {("completed", kept_id)}
    assert api.show_contact(kept_id)["tags"] == ["done"]
    assert active(kept_id, automation_id) == 0
    api.apply()
    do(api.workspace_id, kept_id, adding(api.workspace_id, kept_id, "vip"))
    assert owners() == {kept_id: 1}


def test_an_exit_ends_runs_that_have_not_followed(api: Api, kept_id: str, other_id: str, automation_id: str) -> None:
    merge_at_once(api, kept_id, other_id)
    do(api.workspace_id, kept_id, adding(api.workspace_id, kept_id, "bye"))

    assert {(run.status, run.reason) for run in Run.select()} == {("cancelled", "exit")}
    assert active(kept_id, automation_id) == 0


def test_runs_that_have_not_followed_are_cancelled(api: Api, kept_id: str, other_id: str, automation_id: str) -> None:
    merge_at_once(api, kept_id, other_id)
    api.post(f"automations/{automation_id}/cancel-runs", {})
    # It must not wait for the merge: it may be ahead of that in the same mailbox.
    rows("UPDATE jobs SET position = position - 1000000 WHERE kind = 'automations.cancel_runs' RETURNING 1")
    api.apply()

    assert {(run.status, run.reason) for run in Run.select()} == {("cancelled", "request")}
    assert active(kept_id, automation_id) == 0


def test_runs_reach_a_third_contact(api: Api, kept_id: str, other_id: str, automation_id: str) -> None:
    third_id = make_contact(api.workspace_id)
    merge_at_once(api, kept_id, other_id)
    merge_at_once(api, third_id, kept_id)
    fall_due()
    carry_on(api.workspace_id)

    assert {(run.status, run.contact_id) for run in Run.select()} == {("completed", third_id)}
    assert active(third_id, automation_id) == 0


def test_a_merge_that_is_undone_leaves_the_runs(api: Api, kept_id: str, other_id: str, automation_id: str) -> None:
    merge_at_once(api, kept_id, other_id, then=ValueError("no"))
    do(api.workspace_id, kept_id, adding(api.workspace_id, kept_id, "bye"))
    api.apply()

    assert owners() == {other_id: RUNS}
    assert not rows("SELECT 1 FROM pending_merges")
