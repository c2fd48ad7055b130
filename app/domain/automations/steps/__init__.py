"""Kinds of steps, one per file; the two about tags share a file."""

from __future__ import annotations

from collections.abc import Mapping

from app.domain.automations.steps import (
    add_note,
    ask,
    assign_conversation,
    branch,
    close_conversation,
    http_request,
    label_conversation,
    repeat,
    send_message,
    set_field,
    set_variable,
    snooze_conversation,
    split,
    start_automation,
    stop,
    tags,
    wait,
    wait_for_event,
    wait_for_reply,
)
from app.domain.automations.steps.base import Kind

# The editor's menu of kinds, by group.
GROUPS: Mapping[str, Mapping[str, Kind]] = {
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
        "assign_conversation": assign_conversation.KIND,
        "label_conversation": label_conversation.KIND,
        "add_note": add_note.KIND,
        "snooze_conversation": snooze_conversation.KIND,
        "close_conversation": close_conversation.KIND,
    },
    "Connect": {"http_request": http_request.KIND, "start_automation": start_automation.KIND},
}
KINDS: Mapping[str, Kind] = dict(sorted((name, kind) for kinds in GROUPS.values() for name, kind in kinds.items()))
