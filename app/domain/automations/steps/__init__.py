"""Kinds of steps, one per file; those about tags share a file, and so do those that change a conversation."""

from __future__ import annotations

from collections.abc import Mapping

from app.domain.automations.steps import (
    add_note,
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
from app.domain.automations.steps.base import Kind

KINDS: Mapping[str, Kind] = {
    "add_note": add_note.KIND,
    "add_tag": tags.ADD,
    "ask": ask.KIND,
    "assign_conversation": conversation_steps.ASSIGN,
    "branch": branch.KIND,
    "close_conversation": conversation_steps.CLOSE,
    "http_request": http_request.KIND,
    "label_conversation": conversation_steps.LABEL,
    "remove_tag": tags.REMOVE,
    "repeat": repeat.KIND,
    "send_message": send_message.KIND,
    "set_field": set_field.KIND,
    "set_variable": set_variable.KIND,
    "snooze_conversation": conversation_steps.SNOOZE,
    "split": split.KIND,
    "start_automation": start_automation.KIND,
    "stop": stop.KIND,
    "wait": wait.KIND,
    "wait_for_event": wait_for_event.KIND,
    "wait_for_reply": wait_for_reply.KIND,
}
