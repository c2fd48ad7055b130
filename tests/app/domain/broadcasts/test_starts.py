"""Starts: a broadcast that starts an automation for each contact."""

from __future__ import annotations

import pytest

from app.domain.broadcasts import broadcasts, contact_actions
from tests.broadcasting import begin, later, move, outcomes, people, shown, work
from tests.cast import Api, all_of, one

STOP = {"id": "end", "kind": "stop"}


def test_a_run_begins_for_each_contact(api: Api) -> None:
    automation_id = api.published(STOP)
    opted_out, ada, bob = people(api, 3)
    api.done(api.patch(f"contacts/{opted_out}", {"opted_out": True}))

    broadcast = work(broadcast_id := begin(api.workspace_id, automation_id=automation_id))

    assert broadcast.state == "done"
    assert outcomes(broadcast_id) == {opted_out: "opted_out", ada: "started", bob: "started"}
    assert all_of("SELECT contact_id FROM runs ORDER BY contact_id") == [ada, bob]
    assert one("SELECT run_id FROM broadcast_rows WHERE contact_id = %s", ada) == one(
        "SELECT id FROM runs WHERE contact_id = %s", ada
    )
    told = broadcasts.represent(broadcast)
    assert (told["started"], told["sent"], told["skipped"]) == (2, 0, {"opted_out": 1})


def test_who_may_not_enter_again_is_skipped(api: Api) -> None:
    automation_id = api.published(STOP, reentry="once")
    [ada] = people(api, 1)

    work(begin(api.workspace_id, automation_id=automation_id))
    work(again := begin(api.workspace_id, automation_id=automation_id))

    assert outcomes(again) == {ada: "reentry"}


def test_it_pauses_while_the_automation_is_not_published(api: Api) -> None:
    automation_id = api.published(STOP)
    api.done(api.post(f"automations/{automation_id}/unpublish"))
    [ada] = people(api, 1)

    broadcast = work(broadcast_id := begin(api.workspace_id, automation_id=automation_id))

    assert (broadcast.state, broadcast.problem) == (
        "paused",
        "The automation is not published. Publish it, then continue.",
    )
    api.done(api.post(f"automations/{automation_id}/publish"))
    assert move(broadcast_id, "continue") is None
    work(broadcast_id)
    assert outcomes(broadcast_id) == {ada: "started"}


def test_it_waits_for_runs_that_are_due(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_actions, "MOST_DUE", 2)
    automation_id = api.published(STOP)
    people(api, 3)

    work(broadcast_id := begin(api.workspace_id, automation_id=automation_id))
    assert len(outcomes(broadcast_id)) == 2
    assert shown(broadcast_id).wakes_at is not None

    monkeypatch.setattr(contact_actions, "MOST_DUE", 10)
    assert later(broadcast_id).state == "done"
    assert len(outcomes(broadcast_id)) == 3
