"""The channels of `make up`, a Telegram bot and a web chat, and the automation that answers on both."""

import json
import time
import urllib.error
import urllib.request
from typing import Any, TypedDict

from tests.providers.telegram import TOKEN
from tests.stack.errors import StackError

CONNECTED_SECONDS = 60
WELCOME = {
    "name": "Welcome",
    "reentry": "once",
    "definition": {
        "triggers": [{"event": "message.received"}],
        "steps": [
            {
                "id": "question",
                "kind": "send_message",
                "text": "Hello {{ contact.first_name | default: 'there' }}!"
                " Shall we send you our newsletter? Please answer YES or NO.",
            },
            {
                "id": "ask",
                "kind": "wait_for_reply",
                "timeout_seconds": 86400,
                "save_as": "answer",
                "otherwise": [{"id": "give_up", "kind": "stop"}],
            },
            {
                "id": "said_yes",
                "kind": "branch",
                "if": {"field": "steps.answer", "is": "starts_with", "value": "yes"},
                "then": [
                    {"id": "tag", "kind": "add_tag", "tag": "newsletter"},
                    {"id": "thanks", "kind": "send_message", "text": "Thank you, you are on the list."},
                ],
                "else": [{"id": "alright", "kind": "send_message", "text": "Alright, we will not write to you."}],
            },
        ],
    },
}


class WebChat(TypedDict):
    """A channel's identifier, and the origin of the page that shows it."""

    id: str
    origin: str


class Caller:
    """Calls the API of a running service, and waits for its jobs."""

    def __init__(self, base_url: str, workspace_id: str, token: str) -> None:
        self._base = f"{base_url}/api/v1/workspaces/{workspace_id}"
        self._token = token

    def get(self, path: str) -> Any:
        """The resource. Raises StackError."""
        return self._ask("GET", path)

    def write(self, path: str, body: dict[str, Any], method: str = "POST") -> str:
        """Writes, and returns the identifier of the resource. Raises StackError unless the job succeeds."""
        job = self._ask(method, path, body)
        deadline = time.monotonic() + CONNECTED_SECONDS
        while job.get("status") in ("queued", "running") and time.monotonic() < deadline:
            time.sleep(0.1)
            job = self.get(f"jobs/{job['id']}")
        if job.get("status") not in (None, "succeeded"):
            raise StackError(f"{method} {path} failed: {job}")
        return str(job["resource"]["id"] if "resource" in job else job["id"])

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._base}/{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise StackError(f"{method} {path}: {error.code} {error.read().decode()}") from error


def connect_bot(caller: Caller) -> str:
    """Connects the bot, and publishes the automation; returns the channel's identifier. Raises StackError."""
    credentials = {"bot_token": TOKEN}
    channel_id = caller.write("channels", {"kind": "telegram", "name": "Demo bot", "credentials": credentials})
    deadline = time.monotonic() + CONNECTED_SECONDS
    while (channel := caller.get(f"channels/{channel_id}"))["state"] != "connected":
        if time.monotonic() > deadline:
            raise StackError(f"The demo's bot could not be connected: {channel['problem']}")
        time.sleep(0.1)
    caller.write(f"automations/{caller.write('automations', WELCOME)}/publish", {})
    return channel_id


def connect_web_chat(caller: Caller, origin: str, before: WebChat | None) -> WebChat:
    """Connects a web chat for pages of the origin, unless the one of an earlier start exists; that gets the new origin.

    Raises StackError.
    """
    channels = {channel["id"]: channel for channel in caller.get("channels?limit=100")}
    if before is None or before["id"] not in channels:
        body = {"kind": "web_chat", "name": "Demo shop", "settings": {"origins": [origin]}}
        return {"id": caller.write("channels", body), "origin": origin}
    allowed = channels[before["id"]]["settings"]["origins"]
    if origin not in allowed:
        others = [each for each in allowed if each != before["origin"]]
        caller.write(f"channels/{before['id']}", {"settings": {"origins": [*others, origin]}}, "PATCH")
    return {"id": before["id"], "origin": origin}
