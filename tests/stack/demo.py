"""The demo workspace of `make up`: created once and reused at every start."""

import json
import secrets
import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2

from app.config import read
from app.lib import vault
from tests import histories
from tests.histories import History
from tests.stack.demo_channels import Caller, connect_bot, connect_web_chat
from tests.stack.stack import Stack

EMAIL = "demo@example.com"
SUPPORT = "support@example.com"


class Demo:
    """Creates what is missing, and keeps the token and the password in a file that only its owner can read."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._path = stack.directory / "demo.json"
        self._kept: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() else {}

    @property
    def workspace(self) -> str:
        return str(self._kept["workspace"])

    @property
    def token(self) -> str:
        return str(self._kept["token"])

    @property
    def password(self) -> str:
        return str(self._kept["password"])

    @property
    def chat_script(self) -> str:
        """The address of the web chat's script."""
        return f"{self._stack.base_url}/chat/{self._kept['web_chat']['id']}.js"

    def seed(self, receiver_address: str) -> None:
        """Creates a workspace, people and an endpoint at the address, unless they exist. Saves each step at once.

        The receiver may get another port at another start; each of its addresses gets one endpoint. The history, of two
        days in which some deliveries failed, goes to endpoints of its own at the receiver, where a replay arrives.
        """
        if "workspace" not in self._kept:
            made = self._stack.command("workspace", "create", "Demo")
            self._keep(workspace=made["workspace"]["id"], token=made["token"])
        if "password" not in self._kept:
            password = secrets.token_urlsafe(12)
            self._stack.command("member", "create", self.workspace, EMAIL, "--role", "owner", input=f"{password}\n")
            self._keep(password=password)
        if "support" not in self._kept:
            self._stack.command("support", "create", SUPPORT, input=f"{self.password}\n")
            self._keep(support=SUPPORT)
        addresses = [*self._kept.get("endpoints", [])]
        if receiver_address not in addresses:
            self._stack.command("endpoint", "create", self.workspace, receiver_address, "--events", "*")
            self._keep(endpoints=[*addresses, receiver_address])
        if "history" not in self._kept:
            self._insert_history(receiver_address)
            self._keep(history=True)

    def seed_channels(self, page_origin: str) -> None:
        """Connects a bot and a web chat to the running service, and publishes their automation, unless that is done.

        Pages of the origin may show the web chat. Raises StackError.
        """
        caller = Caller(self._stack.base_url, self.workspace, self.token)
        if "bot" not in self._kept:
            self._keep(bot=connect_bot(caller))
        self._keep(web_chat=connect_web_chat(caller, page_origin, self._kept.get("web_chat")))

    def secrets_of(self, delivery_id: str) -> list[str]:
        """The secret of the endpoint that a delivery belongs to, and the one before it; none if there is no such one.

        Reads them from the database, since the receiver does not see the response that shows a secret.
        """
        query = (
            "SELECT secret, previous_secret FROM endpoints"
            " WHERE id = (SELECT endpoint_id FROM deliveries WHERE id = %s)"
        )
        keys = read(self._stack.environment).secret_keys
        with closing(psycopg2.connect(self._stack.postgres.url)) as connection, connection.cursor() as cursor:
            cursor.execute(query, (delivery_id,))
            return [vault.decrypt(keys, bytes(sealed)) for sealed in cursor.fetchone() or () if sealed is not None]

    def curl(self) -> str:
        """A shell command that creates a new contact and waits for it."""
        contact = {"email": f"ada.{secrets.token_hex(2)}@example.com", "first_name": "Ada", "tags": ["vip"]}
        headers = [f"Authorization: Bearer {self.token}", "Content-Type: application/json", "Prefer: wait=5"]
        command = ["curl", "-sS", "-X", "POST", f"{self._stack.base_url}/api/v1/workspaces/{self.workspace}/contacts"]
        for header in headers:
            command += ["-H", header]
        return shlex.join([*command, "-d", json.dumps(contact)])

    def _insert_history(self, receiver_address: str) -> None:
        secret = vault.encrypt(read(self._stack.environment).secret_keys, f"whsec_{secrets.token_hex(20)}")
        history = History(
            self.workspace,
            deliveries=400,
            failed=40,
            groups=2,
            endpoints=2,
            contacts=60,
            days=2,
            kinds=("contact.updated",),  # not what the pasted request causes, whose webhooks arrive once
            address=f"{receiver_address}/",
            sealed_secret=secret,
        )
        with (
            closing(psycopg2.connect(self._stack.postgres.url)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            histories.insert(cursor, history)

    def _keep(self, **facts: object) -> None:
        self._kept |= facts
        _write_private(self._path, json.dumps(self._kept, indent=2))


def _write_private(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.rename(path)
