"""A kind of channel for tests, whose provider is a function, and channels of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from app.channels.base import Account, Form, Outcome, Request, Verdict
from app.channels.kinds import CHANNEL_KINDS
from app.channels.web_chat import WebChat
from app.database import rows
from app.domain.channels import channel_connections, channels
from app.lib import ids
from app.outbound import Answer, Reason, answered, failed
from tests.cast import accept, apply

API = "https://played.example"


class Played(WebChat):
    """Connects with two requests. The provider's 401 means that the token is wrong, its 400 that a setting is."""

    name: ClassVar[str] = "played"
    has_provider: ClassVar[bool] = True
    form: ClassVar[Form | None] = None
    credentials_schema: ClassVar[Mapping[str, Any] | None] = {
        "type": "object",
        "required": ["token"],
        "additionalProperties": False,
        "properties": {"token": {"type": "string", "minLength": 1, "maxLength": 100}},
    }
    settings_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"number": {"type": "string"}, "reopen": {"type": "boolean"}},
    }

    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        return {**given, "hook_secret": ids.new("sec")}

    def connecting(self, account: Account) -> Sequence[Request]:
        body = json.dumps({"token": account.credentials["token"], "hook": account.hook_address}).encode()
        return [Request("POST", f"{API}/me", body=body), Request("POST", f"{API}/hook", body=body)]

    def connected(self, account: Account, answers: Sequence[Answer]) -> tuple[Verdict, str | None]:
        last = answers[-1]
        if last.ok:
            return Verdict(Outcome.SENT), account.credentials["token"].partition(":")[0]
        outcomes = {401: Outcome.UNAUTHORIZED, 400: Outcome.FAILED, 429: Outcome.LATER, None: Outcome.UNKNOWN}
        pause = 7.0 if last.status == 429 else 0.0
        return Verdict(outcomes[last.status], None, "played", "The provider said no.", pause), None

    def disconnecting(self, account: Account) -> Sequence[Request]:
        return [Request("POST", f"{API}/unhook", body=account.credentials["token"].encode())]


class Provider:
    """Answers requests with what stands in `replies` for their path, by default with 200, and keeps them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.replies: dict[str, Callable[[], Answer]] = {}

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]

    def __call__(self, request: Request) -> Answer:
        path = request.address.removeprefix(API)
        self.asked.append((path, request.body))
        return self.replies.get(path, lambda: answered(200))()

    def refuse(self, status: int, path: str = "/me") -> None:
        self.replies[path] = lambda: answered(status)

    def vanish(self, reason: Reason = Reason.REFUSED, path: str = "/me") -> None:
        self.replies[path] = lambda: failed(reason, may_have_arrived=False)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHANNEL_KINDS, Played.name, Played())  # type: ignore[arg-type]


def create(workspace_id: str, token: str = "1:abc", **fields: Any) -> str:
    """Creates a channel of the kind; the provider has not been asked yet."""
    channel_id = ids.new("chn")
    sealed = channels.sealed(CHANNEL_KINDS["played"].fresh_credentials({"token": token})).decode()
    payload = {"kind": "played", "name": "Shop", "settings": {}, "sealed_secret": sealed} | fields
    accept(workspace_id, "channels.create", payload, channel_id)
    apply(workspace_id)
    return channel_id


def ask_providers(workspace_id: str, ask: Callable[[Request], Answer]) -> None:
    """Asks what is due in the workspace, one channel after the other. `ask` sends a request."""
    while dispatches := channel_connections.claim({workspace_id: 1}).dispatches:
        asking = channel_connections.asking(dispatches[0])
        try:
            request = next(asking)
            while True:
                request = asking.send(ask(request))
        except StopIteration as end:
            channel_connections.record([end.value])


def connected(workspace_id: str, token: str = "1:abc", provider: Provider | None = None) -> str:
    """Creates a channel that its provider has connected."""
    channel_id = create(workspace_id, token)
    ask_providers(workspace_id, provider or Provider())
    return channel_id


def reauthorize(workspace_id: str, channel_id: str, token: str) -> None:
    """Gives the channel another token, without asking the provider yet."""
    sealed = channels.sealed(CHANNEL_KINDS["played"].fresh_credentials({"token": token})).decode()
    accept(workspace_id, "channels.reauthorize", {"sealed_secret": sealed}, channel_id)
    apply(workspace_id)


def state(channel_id: str) -> tuple[str, str | None]:
    """The channel's state, and the code of its problem."""
    [(found, problem)] = rows("SELECT state, problem FROM channels WHERE id = %s", (channel_id,))
    return found, problem and problem["code"]
