"""The running service that the browser visits, with its receiver, workspaces and people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg2

from tests.journeys.shops import Caller
from tests.stack.ports import free_port
from tests.stack.processes import process_types
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

PASSWORD = "correct horse battery staple"
SUPPORT = "sam@support.example"
ROLES = ("owner", "admin", "agent")
SETTINGS = {
    "RATE_LIMIT": "0",
    # Receivers fail on purpose; a delivery has failed after its second attempt.
    "RETRY_SCHEDULE": "1",
    "STOP_AFTER_FAILURES": "1000000",
    "PROBE_PAUSE_SECONDS": "0",
}


@dataclass(frozen=True)
class Workspace:
    """A workspace with one member of each role."""

    id: str
    name: str
    token: str = field(repr=False)
    base_url: str

    def email(self, role: str) -> str:
        return f"{role}@{self.id.removeprefix('ws_')}.example"

    def caller(self) -> Caller:
        return Caller(self.base_url, self.id, self.token)

    def path(self, path: str = "dashboard") -> str:
        return f"/workspaces/{self.id}/{path}"


class Service:
    """Every process of the Procfile, a receiver that can break, and the ports at which it looks for providers."""

    def __init__(self, stack: Stack, receiver: Receiver, telegram_port: int, whatsapp_port: int) -> None:
        self.stack = stack
        self.receiver = receiver
        self.telegram_port = telegram_port
        self.whatsapp_port = whatsapp_port
        stack.command("support", "create", SUPPORT, input=f"{PASSWORD}\n")

    @property
    def base_url(self) -> str:
        return self.stack.base_url

    def open(self, name: str) -> Workspace:
        """Creates a workspace with its members."""
        made = self.stack.command("workspace", "create", name)
        workspace = Workspace(made["workspace"]["id"], name, made["token"], self.base_url)
        for role in ROLES:
            self._add(workspace.id, workspace.email(role), role)
        return workspace

    def member_id(self, workspace: Workspace, role: str) -> str:
        """The member of the workspace with that role."""
        [(found,)] = self.query("SELECT id FROM members WHERE workspace_id = %s AND role = %s", workspace.id, role)
        return str(found)

    def query(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Runs a statement in autocommit mode and returns its rows."""
        with closing(psycopg2.connect(self.stack.postgres.url)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql, parameters or None)
                return cursor.fetchall() if cursor.description else []

    def _add(self, workspace_id: str, email: str, role: str, *flags: str) -> None:
        self.stack.command("member", "create", workspace_id, email, "--role", role, *flags, input=f"{PASSWORD}\n")


@contextmanager
def serving() -> Iterator[Service]:
    """The service during the block."""
    counts = dict.fromkeys(process_types(), 1)
    telegram_port, whatsapp_port = free_port(), free_port()
    settings = SETTINGS | {
        "TELEGRAM_API_URL": f"https://127.0.0.1:{telegram_port}",
        "WHATSAPP_API_URL": f"https://127.0.0.1:{whatsapp_port}/v23.0",
    }
    with (
        TemporaryDirectory(prefix="bellhop-browser-", ignore_cleanup_errors=True) as directory,
        Stack(Path(directory), counts, settings) as stack,
        Receiver(stack.certificates.ca_file.parent) as receiver,
    ):
        yield Service(stack, receiver, telegram_port, whatsapp_port)
