"""The customers of the stories: a workspace each, with an endpoint at the receiver that gets all its events."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

# What a call raises if there is no response.
NoAnswer = (OSError, HTTPException)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    document: Any

    @property
    def data(self) -> Any:
        return self.document["data"]


class Caller:
    """Calls the API for one workspace over a kept-alive connection."""

    def __init__(self, base_url: str, workspace_id: str, token: str) -> None:
        self._connection = HTTPConnection(urlsplit(base_url).netloc, timeout=30)
        self._prefix = f"/api/v1/workspaces/{workspace_id}/"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Sends a request. Raises NoAnswer if there is no response; the next call reconnects."""
        body = document if document is None or isinstance(document, bytes) else json.dumps(document)
        try:
            self._connection.request(method, self._prefix + path, body, self._headers | dict(headers or {}))
            response = self._connection.getresponse()
            content = response.read()
        except NoAnswer:
            self._connection.close()
            raise
        return Answer(response.status, response.headers, json.loads(content) if content else None)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.data

    def apply(self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Sends a write and waits for its result, which must be a success."""
        named = {"Prefer": "wait=20", "Idempotency-Key": str(uuid.uuid4()), **(headers or {})}
        while (answer := self.call(method, path, document, named)).status == 202:
            pass  # there was no place to wait: the same key waits for the same job
        assert answer.status in (200, 201, 204), answer
        return answer


@dataclass(frozen=True)
class Shop:
    """A workspace and its endpoint, whose path at the receiver is `hook`."""

    base_url: str
    workspace_id: str
    token: str
    hook: str
    endpoint_id: str
    secret: str

    def caller(self) -> Caller:
        return Caller(self.base_url, self.workspace_id, self.token)


def open_shops(stack: Stack, receiver: Receiver, count: int) -> list[Shop]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda number: open_shop(stack, receiver, f"Shop {number}"), range(count)))


def open_shop(stack: Stack, receiver: Receiver, name: str = "Shop") -> Shop:
    made = stack.command("workspace", "create", name)
    workspace_id, token = made["workspace"]["id"], made["token"]
    hook = f"/{workspace_id}"
    wanted = {"address": receiver.url(hook), "events": ["*"]}
    answer = Caller(stack.base_url, workspace_id, token).apply("POST", "webhooks/endpoints", wanted)
    return Shop(stack.base_url, workspace_id, token, hook, answer.data["id"], answer.document["secret"])
