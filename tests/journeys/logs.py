"""The logs of the processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.stack.stack import Stack


def lines(stack: Stack, name: str) -> list[dict[str, Any]]:
    """The events that a process has logged, oldest first."""
    return read_lines(stack.processes.log(name))


def read_lines(log: Path) -> list[dict[str, Any]]:
    """The events in a log, oldest first."""
    # Without the last line, which may be incomplete.
    text = log.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def events_of(stack: Stack, kind: str, request_id: str) -> list[str]:
    """The names of the events that the processes of a type logged about a request."""
    names = stack.processes.names_of(kind)
    return [line["event"] for name in names for line in lines(stack, name) if line.get("request_id") == request_id]
