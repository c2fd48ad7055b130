"""`wait_for_reply`: waits for the contact's answer to the run's latest message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.automations.steps import times
from app.domain.automations.steps.base import (
    NAME,
    Done,
    Entry,
    Outcome,
    StepContext,
    StepFailed,
    StepKind,
    Wait,
    Words,
    saved,
)
from app.domain.conversations import conversations, replies
from app.domain.triggers.plain_words import Given, Names, duration
from app.lib.json import timestamp


def begin(context: StepContext) -> Outcome:
    """Continues at once with a reply that has already arrived; otherwise waits for one."""
    until = times.deadline(context)
    waiting = f"The run waits for a reply until {timestamp(until)}."
    if context.is_simulated:
        return Wait("reply", waiting, until)
    conversation = conversations.of_run(context.unit, context.run)
    if conversation is None:
        raise StepFailed("no_channel", "The contact has no conversation in which to reply.")
    run_fields = {"conversation_id": conversation.id}
    if (message := replies.arrived(context.unit, conversation, context.run)) is not None:
        return _answered(context, replies.answer_of(message), run_fields)
    replies.expect(context.unit, conversation, context.run)
    return Wait("reply", waiting, until, run_fields=run_fields)


def resume(context: StepContext) -> Outcome:
    """Continues with the reply; with `otherwise` after a timeout, or if a newer run waits for it."""
    answer = context.answer
    if answer is None:
        return _unanswered(context, "No reply came in time.", {"timed_out": True})
    if "taken_over_by" in answer:
        newer = answer["taken_over_by"]
        text = f"The run {newer} waits for the reply instead."
        return _unanswered(context, text, {"timed_out": False, "taken_over_by": newer})
    return _answered(context, answer, {})


def _answered(context: StepContext, answer: Mapping[str, Any], run_fields: Mapping[str, Any]) -> Done:
    result = {**answer, "timed_out": False}
    kept = saved(context, result, answer["text"])
    return Done("The contact replied.", output=result, saved=kept, run_fields=run_fields)


def _unanswered(context: StepContext, text: str, result: Mapping[str, Any]) -> Done:
    return Done(text, output=result, saved=saved(context, result, None), to="otherwise")


def within(step: Given) -> str:
    """Describes the timeout, to end a sentence with: " within 2 hours"; "" if the step has none."""
    return f" within {duration(step['timeout_seconds'])}" if "timeout_seconds" in step else ""


def _words(step: Given, names: Names) -> Words:
    most = f"{duration(step['timeout_seconds'])} at most" if "timeout_seconds" in step else ""
    return Words("Wait for a reply", most)


KIND = StepKind(
    entry=Entry("Wait for a reply", "message-circle-reply", "reply", {"timeout_seconds": times.DAY_SECONDS}),
    words=_words,
    way=lambda step, key: ("No reply", f"If no reply comes{within(step)}"),
    past=("Replied", "When the contact has replied"),
    description="Waits for the contact's reply to the latest message of the run. In a conversation at most one run "
    "waits: a newer one takes over, and the older one continues with `otherwise`. `steps.<id>` has `text`, `button_id`"
    " (null: nothing was pressed) and `timed_out`.",
    fields={
        "timeout_seconds": times.TIMEOUT,
        "save_as": NAME | {"description": "Another name in `steps`, for the reply's text alone; null if none came."},
        "otherwise": {"description": "The steps to take if no reply comes in time."},
    },
    lists=("otherwise",),
    waits=True,
    talks=True,
    results=("text", "button_id", "data", "message_id", "at", "timed_out", "taken_over_by"),
    begin=begin,
    resume=resume,
    example={"timeout_seconds": 3600, "save_as": "answer", "otherwise": []},
)
