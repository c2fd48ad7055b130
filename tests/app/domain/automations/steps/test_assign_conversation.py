from __future__ import annotations

import pytest

from app.domain.automations.steps.base import Done, StepFailed
from tests.app.domain.automations.steps.moments import begin
from tests.cast import Api, event_kinds, one
from tests.talks import make_member, receive


def test_the_conversation_is_assigned_to_the_member_or_to_nobody(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    member_id = make_member(workspace_id)

    outcome = begin(run_id, "assign_conversation", {"assignee_id": member_id})

    assert isinstance(outcome, Done)
    assert outcome.text == f"The conversation was assigned to {member_id}."
    assert one("SELECT assignee_id FROM conversations") == member_id
    assert one("SELECT conversation_id FROM runs") == conversation_id
    begin(run_id, "assign_conversation", {"assignee_id": None})
    assert one("SELECT assignee_id FROM conversations") is None
    assert event_kinds(workspace_id)[-2:] == ["conversation.assigned"] * 2


def test_a_member_of_another_workspace_fails_the_run(
    others: Api, workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    member_id = make_member(others.workspace_id)

    with pytest.raises(StepFailed, match=f"The workspace has no member {member_id}") as failure:
        begin(run_id, "assign_conversation", {"assignee_id": member_id})

    assert failure.value.code == "gone"


def test_without_a_conversation_the_run_goes_on(channel_id: str, run_id: str) -> None:
    outcome = begin(run_id, "assign_conversation", {"assignee_id": None})

    assert isinstance(outcome, Done)
    assert (outcome.code, outcome.text) == ("no_channel", "The contact has no conversation.")


def test_a_simulation_assigns_nothing(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    begin(run_id, "assign_conversation", {"assignee_id": make_member(workspace_id)}, is_simulated=True)

    assert one("SELECT assignee_id FROM conversations") is None
