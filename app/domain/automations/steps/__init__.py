"""Kinds of steps, one per file. Steps about tags share a file, as do steps about conversations."""

from __future__ import annotations

from collections.abc import Mapping

from app.domain.automations.steps import (
    ask,
    branch,
    conversation_steps,
    http_request,
    repeat,
    send_message,
    set_field,
    set_variable,
    split,
    start_automation,
    stop,
    tags,
    wait,
    wait_for_event,
    wait_for_reply,
)
from app.domain.automations.steps.base import StepKind

# The editor's menu of kinds, by group.
GROUPS: Mapping[str, Mapping[str, StepKind]] = {
    "Talk to the contact": {"send_message": send_message.KIND, "ask": ask.KIND, "wait_for_reply": wait_for_reply.KIND},
    "Decide and wait": {
        "branch": branch.KIND,
        "wait": wait.KIND,
        "wait_for_event": wait_for_event.KIND,
        "split": split.KIND,
        "repeat": repeat.KIND,
        "stop": stop.KIND,
    },
    "Know the contact": {
        "add_tag": tags.ADD,
        "remove_tag": tags.REMOVE,
        "set_field": set_field.KIND,
        "set_variable": set_variable.KIND,
    },
    "Work in the inbox": {
        "assign_conversation": conversation_steps.ASSIGN,
        "label_conversation": conversation_steps.LABEL,
        "add_note": conversation_steps.NOTE,
        "snooze_conversation": conversation_steps.SNOOZE,
        "close_conversation": conversation_steps.CLOSE,
    },
    "Connect": {"http_request": http_request.KIND, "start_automation": start_automation.KIND},
}
STEP_KINDS: Mapping[str, StepKind] = dict(
    sorted((name, kind) for kinds in GROUPS.values() for name, kind in kinds.items())
)
