from __future__ import annotations

from datetime import timedelta

import pytest

from app.domain.automations.steps.base import Done, StepFailed, Wait
from app.models.conversations import Conversation
from app.models.runs import Run
from tests.app.domain.automations.steps.moments import begin, resume
from tests.cast import one
from tests.talks import receive

FIELDS = {"timeout_seconds": 60, "save_as": "answer"}
ANSWER = {"text": "Yes", "message_id": "msg_1", "at": "2026-11-21T10:00:00.000Z"}


def test_the_run_waits_for_a_reply_until_the_timeout(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    before = one("SELECT clock_timestamp()")

    outcome = begin(run_id, "wait_for_reply", FIELDS)

    assert isinstance(outcome, Wait)
    assert outcome.waits_for == "reply"
    assert outcome.until
    assert before + timedelta(minutes=1) < outcome.until < one("SELECT clock_timestamp()") + timedelta(minutes=1)
    assert Run.get_by_id(run_id).conversation_id == conversation_id
    assert Conversation.get_by_id(conversation_id).waiting_run_id == run_id


def test_without_a_timeout_it_waits_ninety_days(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    outcome = begin(run_id, "wait_for_reply")

    assert isinstance(outcome, Wait)
    assert outcome.until
    assert (outcome.until - one("SELECT now()")).days in (89, 90)


def test_without_a_conversation_the_run_fails(channel_id: str, run_id: str) -> None:
    with pytest.raises(StepFailed, match="no conversation") as failure:
        begin(run_id, "wait_for_reply", FIELDS)

    assert failure.value.code == "no_channel"


def test_a_reply_that_came_after_the_prompt_is_taken_at_once(
    workspace_id: str, contact_id: str, channel_id: str, run_id: str
) -> None:
    begin(run_id, "send_message", {"text": "Well?"})
    reply = receive(workspace_id, contact_id, channel_id, "Yes")

    outcome = begin(run_id, "wait_for_reply", FIELDS)

    assert isinstance(outcome, Done)
    assert outcome.to is None
    assert outcome.saved["answer"] == "Yes"
    assert outcome.saved["step"]["message_id"] == reply.id
    assert one("SELECT run_id FROM messages WHERE id = %s", reply.id) == run_id
    assert isinstance(begin(run_id, "wait_for_reply", FIELDS), Wait)


def test_the_reply_is_saved_under_the_step_and_its_text_under_the_name() -> None:
    outcome = resume("wait_for_reply", FIELDS, ANSWER)

    assert isinstance(outcome, Done)
    assert outcome.to is None
    assert outcome.saved == {"step": ANSWER | {"timed_out": False}, "answer": "Yes"}
    assert outcome.output == outcome.saved["step"]


def test_without_a_name_the_reply_is_saved_under_the_step_alone() -> None:
    outcome = resume("wait_for_reply", {}, ANSWER)

    assert isinstance(outcome, Done)
    assert outcome.saved.keys() == {"step"}


def test_after_the_timeout_the_run_goes_on_with_otherwise() -> None:
    outcome = resume("wait_for_reply", FIELDS, None)

    assert isinstance(outcome, Done)
    assert (outcome.to, outcome.text) == ("otherwise", "No reply came in time.")
    assert outcome.saved == {"step": {"timed_out": True}, "answer": None}


def test_if_a_newer_run_takes_over_the_run_goes_on_with_otherwise_and_says_why() -> None:
    outcome = resume("wait_for_reply", FIELDS, {"taken_over_by": "run_2"})

    assert isinstance(outcome, Done)
    assert (outcome.to, outcome.text) == ("otherwise", "The run run_2 waits for the reply instead.")
    assert outcome.saved == {"step": {"timed_out": False, "taken_over_by": "run_2"}, "answer": None}


def test_a_simulation_needs_no_conversation(run_id: str) -> None:
    outcome = begin(run_id, "wait_for_reply", FIELDS, is_simulated=True)

    assert isinstance(outcome, Wait)
    assert outcome.waits_for == "reply"
