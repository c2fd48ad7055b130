"""The service that is attacked: a stack of its own, with workspaces for attackers and victims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.journeys.shops import Caller
from tests.stack.stack import Stack

# One of each, as a small installation has.
PROCESSES = {
    **{"web": 1, "realtime": 1, "writes": 1, "automations": 1, "deliveries": 1, "slow-deliveries": 1, "retries": 1},
    **{"messages": 1, "scheduler": 1},
}


class Tenant(NamedTuple):
    """A workspace, and a token that may do everything there."""

    base_url: str
    workspace_id: str
    token: str

    def caller(self) -> Caller:
        """Calls the API over a connection of its own."""
        return Caller(self.base_url, self.workspace_id, self.token)


@contextmanager
def service(
    processes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None, **options: Any
) -> Iterator[Stack]:
    """A running service with these processes, by default one of each."""
    with (
        TemporaryDirectory(prefix="bellhop-doors-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), processes or PROCESSES, settings, **options) as stack,
    ):
        yield stack


def tenant(stack: Stack, name: str) -> Tenant:
    """A new workspace."""
    made = stack.command("workspace", "create", name)
    return Tenant(stack.base_url, made["workspace"]["id"], made["token"])
