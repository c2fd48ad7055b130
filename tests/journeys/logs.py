"""What the processes wrote to their logs."""

from __future__ import annotations

import json
from typing import Any

from tests.stack.stack import Stack


def lines(stack: Stack, name: str) -> list[dict[str, Any]]:
    """The events that a process has logged, oldest first."""
    return [json.loads(line) for line in stack.processes.log(name).read_text().splitlines() if line.startswith("{")]


def events_of(stack: Stack, kind: str, request_id: str) -> list[str]:
    """The names of what the processes of a type logged about a request."""
    names = [name for name in stack.processes.names if name.rpartition(".")[0] == kind]
    return [line["event"] for name in names for line in lines(stack, name) if line.get("request_id") == request_id]
