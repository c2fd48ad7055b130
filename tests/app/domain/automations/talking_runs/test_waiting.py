"""Runs that wait for a reply: it may come early, twice or at the last moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from app.domain.automations import executions
from app.models.runs import Run
from tests.app.domain.automations.talking_runs.steps import (
    ASK,
    PAUSE,
    REPLY,
    ROUNDS,
    THANK,
    log_of,
    replying,
    sent,
    time_passes,
)
from tests.automations import make_automation
from tests.cast import Api, all_of, event_kinds, in_threads, one
from tests.talks import receive


def test_a_run_asks_waits_and_goes_on_with_the_reply(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK, REPLY, THANK)
    work()
    assert Run.get_by_id(run_id).status == "waiting"

    reply = receive(workspace_id, contact_id, channel_id, "Yes")
    work()

    run = Run.get_by_id(run_id)
    assert run.status == "completed"
    assert sent() == ["Well?", "Thanks for Yes"]
    assert run.saved["reply"]["message_id"] == reply.id
    assert log_of(run_id) == [
        *(("ask", "succeeded"), ("reply", "waiting"), ("reply", "succeeded"), ("thank", "succeeded"))
    ]
    assert "message.received" in event_kinds(workspace_id)


def test_a_reply_that_a_run_waits_for_starts_only_what_asks_for_replies(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    for number, trigger in enumerate([{}, {"also_replies": True}]):
        steps = [{"id": "mark", "kind": "add_tag", "tag": f"heard-{number}"}]
        make_automation(workspace_id, {"triggers": [{"event": "message.received", **trigger}], "steps": steps})
    start(ASK, REPLY)
    work()

    receive(workspace_id, contact_id, channel_id, "Yes")
    work()
    assert one("SELECT tags FROM contacts") == ["heard-1"]

    receive(workspace_id, contact_id, channel_id, "And another thing")
    work()
    assert one("SELECT tags FROM contacts") == ["heard-0", "heard-1"]


def test_steps_can_name_the_conversation(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    conversation_id = receive(workspace_id, contact_id, channel_id).conversation_id
    name: Mapping[str, Any] = {"id": "name", "kind": "set_field", "field": "where"}
    start({**name, "value": "{{ conversation.id }} is {{ conversation.status }}"})

    work()

    assert one("SELECT custom_fields->>'where' FROM contacts") == f"{conversation_id} is open"


def test_a_run_that_gets_no_reply_goes_on_with_otherwise(
    channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK, REPLY, THANK)
    work()

    time_passes()
    work()

    assert sent() == ["Well?", "Are you there?"]
    assert Run.get_by_id(run_id).saved == {"reply": {"timed_out": True}, "answer": None}


def test_a_reply_that_comes_before_the_wait_is_written_counts(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    run_id = start(ASK, PAUSE, REPLY, THANK)
    work()
    receive(workspace_id, contact_id, channel_id, "early")

    time_passes()
    work()

    assert Run.get_by_id(run_id).status == "completed"
    assert sent() == ["Well?", "Thanks for early"]


def test_what_the_contact_wrote_before_the_prompt_is_no_reply(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    receive(workspace_id, contact_id, channel_id, "before")
    run_id = start(ASK, PAUSE, REPLY)
    work()

    time_passes()
    work()

    assert Run.get_by_id(run_id).waits_for == "reply"


def test_two_quick_replies_resume_the_run_once(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    again = {**ASK, "id": "again", "text": "And?"}
    run_id = start(ASK, REPLY, again, {**REPLY, "id": "second", "otherwise": []})
    work()

    in_threads([partial(receive, workspace_id, contact_id, channel_id, text) for text in ("one", "two")])
    work()

    run = Run.get_by_id(run_id)
    assert (run.step, run.waits_for) == ("second", "reply")
    assert sent() == ["Well?", "And?"]
    assert sorted(all_of("SELECT run_id FROM messages WHERE direction = 'in'"), key=str) == [None, run_id]


def test_a_second_reply_counts_for_a_second_wait_without_a_new_prompt(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    start(ASK, REPLY, {**REPLY, "id": "second", "save_as": "other", "otherwise": []}, THANK)
    work()

    for text in ("one", "two"):
        receive(workspace_id, contact_id, channel_id, text)
    work()

    assert sent() == ["Well?", "Thanks for one"]
    assert one("SELECT saved->>'other' FROM runs") == "two"


def test_no_reply_is_lost_while_waits_are_written(
    api: Api,
    workspace_id: str,
    channel_id: str,
    start: Callable[..., str],
    work: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contact_ids = [api.contact(phone=f"+4930123{number:03}")["id"] for number in range(ROUNDS)]
    for each in contact_ids:
        start(ASK, PAUSE, REPLY, THANK, contact_id=each)
    work()
    time_passes()
    monkeypatch.setattr(executions, "BATCH", 2)

    assert in_threads([work, *replying(workspace_id, channel_id, contact_ids)]) == [None] * 3
    work()

    assert sent().count("Thanks for Yes") == ROUNDS
    assert all_of("SELECT DISTINCT status FROM runs") == ["completed"]


def test_when_timeouts_race_replies_exactly_one_wins_of_each(
    api: Api,
    workspace_id: str,
    channel_id: str,
    start: Callable[..., str],
    work: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contact_ids = [api.contact(phone=f"+4930123{number:03}")["id"] for number in range(ROUNDS)]
    runs = {each: start(ASK, REPLY, THANK, contact_id=each) for each in contact_ids}
    work()
    time_passes()
    monkeypatch.setattr(executions, "BATCH", 2)

    assert in_threads([work, *replying(workspace_id, channel_id, contact_ids)]) == [None] * 3
    work()

    for contact_id, run_id in runs.items():
        [taken_by] = all_of("SELECT run_id FROM messages WHERE direction = 'in' AND contact_id = %s", contact_id)
        texts = all_of("SELECT text FROM messages WHERE direction = 'out' AND contact_id = %s ORDER BY id", contact_id)
        assert (taken_by, texts) in [(run_id, ["Well?", "Thanks for Yes"]), (None, ["Well?", "Are you there?"])]
        assert Run.get_by_id(run_id).status == "completed"
        assert log_of(run_id).count(("reply", "succeeded")) == 1
