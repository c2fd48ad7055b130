"""The demo workspace of `make up`: seeded once, remembered, the same at every start."""

import json
import secrets
import shlex
from pathlib import Path
from typing import Any

from tests.stack.stack import Stack

EMAIL = "demo@example.com"


class Demo:
    """Seeds what is missing and keeps what was shown once (token, secret, password) in a file of its owner alone."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._path = stack.directory / "demo.json"
        self._kept: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.secret_file = stack.directory / "endpoint-secret"

    @property
    def workspace(self) -> str:
        return str(self._kept["workspace"])

    @property
    def token(self) -> str:
        return str(self._kept["token"])

    @property
    def password(self) -> str:
        return str(self._kept["password"])

    def seed(self, receiver_address: str) -> None:
        """A workspace, a member, and an endpoint at the address. Each step is kept as soon as it is done.

        The receiver may have another port at another start; each of its addresses has one endpoint.
        """
        if "workspace" not in self._kept:
            made = self._stack.command("workspace", "create", "Demo")
            self._keep(workspace=made["workspace"]["id"], token=made["token"])
        if "password" not in self._kept:
            password = secrets.token_urlsafe(12)
            self._stack.command("member", "create", self.workspace, EMAIL, "--role", "owner", input=f"{password}\n")
            self._keep(password=password)
        secrets_by_address = self._kept.get("endpoints", {})
        if receiver_address not in secrets_by_address:
            made = self._stack.command("endpoint", "create", self.workspace, receiver_address, "--events", "*")
            secrets_by_address |= {receiver_address: made["secret"]}
            self._keep(endpoints=secrets_by_address)
        _write_private(self.secret_file, secrets_by_address[receiver_address])

    def curl(self) -> str:
        """One line for a shell that makes a contact, a new one at each start, and waits for it."""
        contact = {"email": f"ada.{secrets.token_hex(2)}@example.com", "first_name": "Ada", "tags": ["vip"]}
        headers = [f"Authorization: Bearer {self.token}", "Content-Type: application/json", "Prefer: wait=5"]
        command = ["curl", "-sS", "-X", "POST", f"{self._stack.base_url}/api/v1/workspaces/{self.workspace}/contacts"]
        for header in headers:
            command += ["-H", header]
        return shlex.join([*command, "-d", json.dumps(contact)])

    def _keep(self, **facts: object) -> None:
        self._kept |= facts
        _write_private(self._path, json.dumps(self._kept, indent=2))


def _write_private(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.rename(path)
