"""A played Cloud API of WhatsApp, and the webhooks that Meta would send."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from werkzeug.formparser import parse_form_data

from app.channels.base import Account
from tests.providers.base import Call, Provider, Reply

NUMBER = "106540352242922"
CREDENTIALS = {"access_token": "EAAJB-token", "app_secret": "app-secret", "verify_token": "verify-me"}
_HEADERS = ("text", "image", "video", "document")
PHONE, USER_ID = "4915112345678", "DE.13491208655302741918"


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that was uploaded, or that a contact has sent."""

    name: str
    content_type: str
    content: bytes


def refusal(code: int, message: str = "Refused", status: int = 400, **headers: str) -> Reply:
    """An error as the Graph API words it."""
    error = {"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ"}
    data = {"messaging_product": "whatsapp", "details": message}
    return Reply(status, {"error": error | {"error_data": data}}, headers)


def account_at(api_url: str, hook_address: str = "https://bellhop.test/hooks/whatsapp/chn_1") -> Account:
    """A channel of the number."""
    return Account("chn_1", {"phone_number_id": NUMBER}, CREDENTIALS, api_url, hook_address)


class WhatsAppServer(Provider):
    """The API at `api_url`. `messages` are those that it has taken, by identifier; `media` the files it keeps."""

    def __init__(self, directory: Path, port: int | None = None) -> None:
        super().__init__(directory, port)
        self.messages: dict[str, Mapping[str, Any]] = {}
        self.read: list[str] = []
        self.media: dict[str, Stored] = {}
        self._numbers = itertools.count(1)

    @property
    def api_url(self) -> str:
        return f"{self.url}/v23.0"

    @property
    def account(self) -> Account:
        """A channel that is connected to it."""
        return account_at(self.api_url)

    def keep(self, name: str, content_type: str, content: bytes) -> str:
        """Keeps a file as if a contact had sent it; returns its identifier."""
        media_id = f"{2_000_000 + next(self._numbers)}"
        self.media[media_id] = Stored(name, content_type, content)
        return media_id

    def reply(self, call: Call) -> Reply:
        if call.headers.get("Authorization") != f"Bearer {CREDENTIALS['access_token']}":
            return refusal(190, "Invalid OAuth access token.", 401)
        match call.method, call.path.strip("/").split("/")[-2:]:
            case "GET", ["v23.0", number] if number == NUMBER:
                return Reply(200, {"id": NUMBER, "display_phone_number": "+1 555 078 3881", "verified_name": "Shop"})
            case "POST", [number, "media"] if number == NUMBER:
                return self._upload(call)
            case "POST", [number, "messages"] if number == NUMBER:
                return self._take(call.json)
            case "GET", ["v23.0", media_id] if media_id in self.media:
                stored = self.media[media_id]
                described = {"mime_type": stored.content_type, "file_size": len(stored.content), "id": media_id}
                return Reply(200, {"url": f"{self.url}/attachments/{media_id}?ext=1", **described})
            case "GET", ["attachments", media_id] if media_id in self.media:
                return Reply(200, self.media[media_id].content)
        return refusal(100, "Unsupported request: the object does not exist.")

    def _upload(self, call: Call) -> Reply:
        environ = {
            "REQUEST_METHOD": "POST",
            "CONTENT_TYPE": call.headers["Content-Type"],
            "CONTENT_LENGTH": str(len(call.body)),
            "wsgi.input": BytesIO(call.body),
        }
        _, form, files = parse_form_data(environ, silent=False)
        if form.get("messaging_product") != "whatsapp" or "file" not in files:
            return refusal(100, "Invalid parameter")
        file = files["file"]
        return Reply(200, {"id": self.keep(file.filename or "", file.content_type or "", file.read())})

    def _take(self, document: Mapping[str, Any]) -> Reply:
        if document.get("messaging_product") != "whatsapp":
            return refusal(100, "The parameter messaging_product is required.")
        if document.get("status") == "read":
            self.read.append(document["message_id"])
            return Reply(200, {"success": True})
        whom = document.get("to") or document.get("recipient")
        if not whom or not document.get(document.get("type", "text")):
            return refusal(131008, "Required parameter is missing.")
        if (wrong := _wrong_with(document.get("interactive"))) is not None:
            return refusal(131009, f"Parameter value is not valid: {wrong}")
        wamid = f"wamid.{next(self._numbers):020}"
        self.messages[wamid] = document
        contacts = [{"input": whom, "wa_id": whom}]
        return Reply(200, {"messaging_product": "whatsapp", "contacts": contacts, "messages": [{"id": wamid}]})


def _wrong_with(interactive: Mapping[str, Any] | None) -> str | None:
    """What Meta would refuse about an interactive message: the limits of its texts, buttons and rows."""
    if interactive is None:
        return None
    action, is_list = interactive["action"], interactive["type"] == "list"
    if is_list:
        chosen = [row for section in action["sections"] for row in section["rows"]]
    else:
        chosen = [each["reply"] for each in action["buttons"]]
    most, most_id, most_title, most_body = (10, 200, 24, 4096) if is_list else (3, 256, 20, 1024)
    limits = {
        "number of buttons": 1 <= len(chosen) <= most,
        "id": len({each["id"] for each in chosen}) == len(chosen)
        and all(len(each["id"]) <= most_id for each in chosen),
        "title": all(1 <= len(each["title"]) <= most_title for each in chosen),
        "body": 1 <= len(interactive["body"]["text"]) <= most_body,
        "button": not is_list or 1 <= len(action["button"]) <= 20,
        "header": "header" not in interactive or (not is_list and interactive["header"]["type"] in _HEADERS),
    }
    return next((name for name, is_kept in limits.items() if not is_kept), None)


def signed(body: bytes, secret: str = CREDENTIALS["app_secret"]) -> dict[str, str]:
    """The headers of a webhook."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={signature}"}


def webhook(field: str = "messages", number: str = NUMBER, **value: Any) -> bytes:
    """The body of a webhook with this change."""
    metadata = {"display_phone_number": "15550783881", "phone_number_id": number}
    changed = {"messaging_product": "whatsapp", "metadata": metadata, **value}
    entry = {"id": "102290129340398", "changes": [{"field": field, "value": changed}]}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry]}).encode()


def person(phone: str | None = PHONE, user_id: str | None = USER_ID, name: str = "Ada") -> dict[str, Any]:
    """Whom a webhook is about; without a phone it is somebody who hides it."""
    known = {"wa_id": phone, "user_id": user_id}
    return {"profile": {"name": name}} | {name: value for name, value in known.items() if value}


def message(wamid: str, at: float | None = None, phone: str | None = PHONE, **content: Any) -> dict[str, Any]:
    """A message from a contact; `content` is `text="…"`, or a kind with its object."""
    whom = {"from": phone} if phone else {"from_user_id": USER_ID}
    return {**whom, **_item(wamid, at, content)}


def echo(wamid: str, at: float | None = None, phone: str = PHONE, **content: Any) -> dict[str, Any]:
    """A message that the business has written in the phone app."""
    return {"from": "15550783881", "to": phone, **_item(wamid, at, content)}


def status(wamid: str, status: str, at: float | None = None, **members: Any) -> dict[str, Any]:
    """What has become of a message."""
    return {"id": wamid, "status": status, "timestamp": _seconds(at), "recipient_id": PHONE, **members}


def _item(wamid: str, at: float | None, content: Mapping[str, Any]) -> dict[str, Any]:
    [(kind, part)] = content.items()
    return {"id": wamid, "timestamp": _seconds(at), "type": kind, kind: {"body": part} if kind == "text" else part}


def _seconds(at: float | None) -> str:
    return str(int(time.time() if at is None else at))
