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

KINDS: Mapping[str, Kind] = {
    "add_note": add_note.KIND,
    "add_tag": tags.ADD,
    "ask": ask.KIND,
    "assign_conversation": assign_conversation.KIND,
    "branch": branch.KIND,
    "close_conversation": close_conversation.KIND,
    "http_request": http_request.KIND,
    "label_conversation": label_conversation.KIND,
    "remove_tag": tags.REMOVE,
    "repeat": repeat.KIND,
    "send_message": send_message.KIND,
    "set_field": set_field.KIND,
    "set_variable": set_variable.KIND,
    "snooze_conversation": snooze_conversation.KIND,
    "split": split.KIND,
    "start_automation": start_automation.KIND,
    "stop": stop.KIND,
    "wait": wait.KIND,
    "wait_for_event": wait_for_event.KIND,
    "wait_for_reply": wait_for_reply.KIND,
}
