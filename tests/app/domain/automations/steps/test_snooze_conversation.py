from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.domain.automations.steps.base import Done, Outcome, StepFailed
from app.lib import clock
from tests.app.domain.automations.steps.moments import begin
from tests.cast import event_kinds, one
from tests.talks import close, receive


def snooze(run_id: str, **options: Any) -> Outcome:
    return begin(run_id, "snooze_conversation", {"seconds": 3600}, **options)


def test_the_conversation_is_snoozed(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    outcome = snooze(run_id)

    assert isinstance(outcome, Done)
    assert outcome.code is None
    assert one(
        "SELECT snoozed_until BETWEEN now() + interval '59 minutes' AND now() + interval '1 hour' FROM conversations"
    )
    assert event_kinds(workspace_id)[-1] == "conversation.snoozed"


def test_without_an_open_conversation_the_run_goes_on(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    without = snooze(run_id)
    receive(workspace_id, contact_id, channel_id)
    close(workspace_id, contact_id)
    closed = snooze(run_id)

    assert [each.code for each in (without, closed) if isinstance(each, Done)] == ["no_channel", "closed"]


def test_a_time_that_has_passed_changes_nothing_and_one_far_away_fails(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    passed = begin(run_id, "snooze_conversation", {"until": "2020-01-01T00:00:00Z"})
    with pytest.raises(StepFailed):
        begin(run_id, "snooze_conversation", {"until": (clock.now() + timedelta(days=366)).isoformat()})

    assert isinstance(passed, Done)
    assert one("SELECT snoozed_until FROM conversations") is None


def test_a_simulation_changes_nothing(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    assert isinstance(snooze(run_id, is_simulated=True), Done)
    assert one("SELECT snoozed_until FROM conversations") is None
