"""Errors of the servers and processes of the stack."""

from collections.abc import Iterable
from pathlib import Path


class StackError(Exception):
    """A part of the stack does not work; the message is for people."""


class DidNotStart(StackError):
    """A server or process ended or hung at startup; the message shows its last lines."""

    def __init__(self, name: str, last_lines: Iterable[str]) -> None:
        shown = "\n".join(f"  {line}" for line in last_lines)
        super().__init__(f"{name} did not start. Its last lines:\n{shown or '  (it printed nothing)'}")


def last_lines(log: Path, count: int = 12, from_byte: int = 0) -> list[str]:
    """The end of a log file; empty if there is none."""
    if not log.exists():
        return []
    return log.read_bytes()[from_byte:].decode(errors="replace").splitlines()[-count:]
