from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import Done, StepFailed
from app.errors import Fault
from tests.app.domain.automations.steps.moments import begin
from tests.cast import event_kinds, one
from tests.talks import receive


def label(run_id: str, label: str, **options: Any) -> Done:
    outcome = begin(run_id, "label_conversation", {"label": label}, **options)
    assert isinstance(outcome, Done)
    return outcome


def labels() -> Any:
    return one("SELECT labels FROM conversations")


def test_the_label_is_added_once(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    label(run_id, "urgent")

    first = label(run_id, " {what} ", variables={"what": "refund"})
    again = label(run_id, "refund")

    assert labels() == ["refund", "urgent"]
    assert (first.text, first.output) == (
        "The conversation was labelled 'refund'.",
        {"conversation_id": conversation_id},
    )
    assert again.text == "The conversation had the label 'refund' already."
    assert event_kinds(workspace_id).count("conversation.labelled") == 2
    assert one("SELECT conversation_id FROM runs") == conversation_id


def test_a_conversation_with_twenty_labels_keeps_them(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    rows("UPDATE conversations SET labels = ARRAY(SELECT 'l' || lpad(n::text, 2, '0') FROM generate_series(1, 20) n)")

    outcome = label(run_id, "refund")

    assert (outcome.code, outcome.text) == ("limit", "A conversation has at most 20 labels.")
    assert len(labels()) == 20


@pytest.mark.parametrize("text", ["  ", "{long}", "a\nb"])
def test_a_text_that_is_no_label_fails_the_run(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str, text: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    with pytest.raises(StepFailed, match="A label has 1 to 100 characters") as failure:
        label(run_id, text, variables={"long": "x" * 101})

    assert failure.value.code == "error"


def test_a_label_without_a_template_is_checked_at_once() -> None:
    detail = "A label has 1 to 100 characters, no control characters, and more than spaces."

    assert list(STEP_KINDS["label_conversation"].check({"label": "x" * 101}, "/steps/0")) == [
        Fault("/steps/0/label", detail)
    ]
    assert list(STEP_KINDS["label_conversation"].check({"label": "{{ contact.email }}"}, "/steps/0")) == []


def test_without_a_conversation_the_run_goes_on(channel_id: str, run_id: str) -> None:
    outcome = label(run_id, "refund")

    assert (outcome.code, outcome.text) == ("no_channel", "The contact has no conversation.")


def test_a_simulation_labels_nothing(workspace_id: str, contact_id: str, channel_id: str, run_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    label(run_id, "refund", is_simulated=True)

    assert labels() == []
