"""Kinds of steps, one file each."""

from __future__ import annotations

from collections.abc import Mapping

from app.domain.automations.steps import (
    add_tag,
    assign_conversation,
    branch,
    close_conversation,
    http_request,
    remove_tag,
    send_message,
    set_field,
    start_automation,
    stop,
    wait,
    wait_for_reply,
)
from app.domain.automations.steps.base import Kind

KINDS: Mapping[str, Kind] = {
    "add_tag": add_tag.KIND,
    "assign_conversation": assign_conversation.KIND,
    "branch": branch.KIND,
    "close_conversation": close_conversation.KIND,
    "http_request": http_request.KIND,
    "remove_tag": remove_tag.KIND,
    "send_message": send_message.KIND,
    "set_field": set_field.KIND,
    "start_automation": start_automation.KIND,
    "stop": stop.KIND,
    "wait": wait.KIND,
    "wait_for_reply": wait_for_reply.KIND,
}
