from __future__ import annotations

from app.domain.automations.steps.base import Done
from tests.app.domain.automations.steps.moments import begin
from tests.cast import event_kinds, one
from tests.talks import make_run, receive


def test_the_conversation_is_closed(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id

    outcome = begin(run_id, "close_conversation")

    assert isinstance(outcome, Done)
    assert outcome.output == {"conversation_id": conversation_id}
    assert one("SELECT status FROM conversations") == "closed"
    assert event_kinds(workspace_id)[-1] == "conversation.closed"


def test_closing_a_closed_one_does_nothing(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    begin(make_run(workspace_id, contact_id), "close_conversation")

    assert isinstance(begin(run_id, "close_conversation"), Done)

    assert event_kinds(workspace_id).count("conversation.closed") == 1


def test_without_a_conversation_the_run_goes_on(channel_id: str, run_id: str) -> None:
    outcome = begin(run_id, "close_conversation")

    assert isinstance(outcome, Done)
    assert outcome.code == "no_channel"


def test_a_simulation_closes_nothing(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    begin(run_id, "close_conversation", is_simulated=True)

    assert one("SELECT status FROM conversations") == "open"
