"""Telegram's Bot API, played: its bots, and what they send."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from werkzeug.formparser import parse_form_data

from tests.providers.base import Call, Provider, Reply

TOKEN = "123456789:AAHn-hand-made-for-tests-0123456789"
PHOTO_SIZES = ((90, 67), (1280, 960))
MOST_CHARACTERS, MOST_CAPTION = 4096, 1024
# The methods that send a file, and the member that holds it.
FILES = {"sendPhoto": "photo", "sendDocument": "document", "sendVideo": "video", "sendAudio": "audio"}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a bot has sent."""

    name: str
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that a bot has sent."""

    chat_id: int
    message_id: int
    text: str | None
    at: float
    file: Upload | None = None
    keyboard: Mapping[str, Any] | None = None


@dataclass
class Bot:
    """A bot, the webhook it has set, and what it has sent."""

    token: str
    name: str = "Demo shop"
    username: str = "demo_shop_bot"
    webhook: Mapping[str, Any] | None = None
    sent: list[Sent] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)  # the presses that it has confirmed

    @property
    def id(self) -> int:
        return int(self.token.partition(":")[0])

    @property
    def user(self) -> dict[str, Any]:
        return {"id": self.id, "is_bot": True, "first_name": self.name, "username": self.username}


class Refused(Exception):
    """The Bot API refuses a call."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status


class Telegram(Provider):
    """Serves /bot<token>/<method> and /file/bot<token>/<path>, and posts updates to the webhooks of its bots.

    `blocked` and `deactivated` are chats that no bot reaches. `knows`, if set, are the only chats there are. Each list
    `sent` of a bot is in the order of the messages. `on_sent` is called with each.
    """

    def __init__(self, directory: Path, port: int | None = None) -> None:
        super().__init__(directory, port)
        self.bots = {TOKEN: Bot(TOKEN)}
        self.blocked: set[int] = set()
        self.deactivated: set[int] = set()
        self.knows: set[int] | None = None
        self.files: dict[str, bytes] = {}
        self.on_sent: Callable[[Bot, Sent], None] | None = None
        self._numbers = itertools.count(int(time.time() * 1000))  # a server that is started again repeats none
        self._lock = threading.Lock()

    @property
    def bot(self) -> Bot:
        """The bot that is there from the beginning."""
        return self.bots[TOKEN]

    def number(self) -> int:
        """A number that was not used before."""
        with self._lock:
            return next(self._numbers)

    def keep_file(self, content: bytes, name: str = "file") -> str:
        """Keeps a file that a person sends; returns its file_id."""
        file_id = f"file{self.number()}-{name}"
        self.files[file_id] = content
        return file_id

    def deliver(self, update: Mapping[str, Any], bot: Bot | None = None) -> int:
        """Posts an update to the bot's webhook, once; returns the status. Raises OSError if nobody listens."""
        webhook = (bot or self.bot).webhook
        assert webhook is not None, "The bot has set no webhook."
        headers = {"Content-Type": "application/json"}
        if webhook.get("secret_token"):
            headers["X-Telegram-Bot-Api-Secret-Token"] = webhook["secret_token"]
        return self.push(webhook["url"], json.dumps(update).encode(), headers)[0]

    def reply(self, call: Call) -> Reply:
        """What the Bot API answers."""
        _, first, *rest = call.path.split("/")
        try:
            if first == "file":
                return self._download(rest[0].removeprefix("bot"), "/".join(rest[1:]))
            result = self._result(first.removeprefix("bot"), rest[0] if rest else "", call)
        except Refused as refusal:
            return refused(refusal.status, str(refusal))
        return Reply(200, {"ok": True, "result": result})

    def _result(self, token: str, method: str, call: Call) -> Any:
        bot = self._find(token)
        action = _METHODS.get(method.lower())
        if action is None:
            raise Refused(404, "Not Found")
        return action(self, bot, *parameters_of(call))

    def _find(self, token: str) -> Bot:
        if not re.fullmatch(r"\d+:[\w-]{20,}", token):
            raise Refused(404, "Not Found")
        if token not in self.bots:
            raise Refused(401, "Unauthorized")
        return self.bots[token]

    def _download(self, token: str, path: str) -> Reply:
        self._find(token)
        content = self.files.get(unquote(path).removeprefix("documents/"))
        if content is None:
            raise Refused(404, "Not Found")
        return Reply(200, content, {"Content-Type": "application/octet-stream"})

    def _send(self, bot: Bot, parameters: Mapping[str, Any], file: Upload | None = None) -> Sent:
        chat_id = self._chat(parameters)
        text = parameters.get("text") if file is None else parameters.get("caption")
        if file is None and not str(text or "").strip():
            raise Refused(400, "Bad Request: message text is empty")
        if text is not None and len(text) > (MOST_CHARACTERS if file is None else MOST_CAPTION):
            raise Refused(400, f"Bad Request: message {'' if file is None else 'caption '}is too long")
        sent = Sent(chat_id, self.number(), text, time.time(), file, _keyboard(parameters))
        bot.sent.append(sent)
        if self.on_sent is not None:
            self.on_sent(bot, sent)
        return sent

    def _chat(self, parameters: Mapping[str, Any]) -> int:
        try:
            chat_id = int(parameters["chat_id"])
        except (KeyError, ValueError):
            raise Refused(400, "Bad Request: chat_id is empty") from None
        if self.knows is not None and chat_id not in self.knows:
            raise Refused(400, "Bad Request: chat not found")
        if chat_id in self.blocked:
            raise Refused(403, "Forbidden: bot was blocked by the user")
        if chat_id in self.deactivated:
            raise Refused(403, "Forbidden: user is deactivated")
        return chat_id


def refused(status: int, description: str, **parameters: int) -> Reply:
    """A refusal as the Bot API words it."""
    body = {"ok": False, "error_code": status, "description": description}
    return Reply(status, body | ({"parameters": parameters} if parameters else {}))


def throttled(seconds: int) -> Reply:
    """The answer to a bot that is too quick."""
    return refused(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


def parameters_of(call: Call) -> tuple[dict[str, Any], dict[str, Upload]]:
    """A call's parameters and files, in whichever of the ways that the Bot API takes they were sent."""
    content_type = call.headers.get("Content-Type", "")
    if content_type.startswith("application/json"):
        return dict(call.query) | call.json, {}
    if not content_type.startswith("multipart/form-data"):
        return dict(call.query) | dict(parse_qsl(call.body.decode())), {}
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(call.body)),
        "wsgi.input": BytesIO(call.body),
    }
    _, fields, files = parse_form_data(environ)
    uploads = {name: Upload(file.filename or "", file.content_type or "", file.read()) for name, file in files.items()}
    return dict(call.query) | dict(fields), uploads


def _get_me(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    return bot.user | {"can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}


def _set_webhook(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    secret = parameters.get("secret_token", "")
    if not re.fullmatch(r"[A-Za-z0-9_-]{0,256}", secret):
        raise Refused(400, "Bad Request: secret token contains unallowed characters")
    allowed = parameters.get("allowed_updates", [])
    bot.webhook = dict(parameters) | {"allowed_updates": json.loads(allowed) if isinstance(allowed, str) else allowed}
    return True


def _delete_webhook(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    bot.webhook = None
    return True


def _send_message(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    sent = server._send(bot, parameters)
    return _shown(bot, sent) | {"text": sent.text}


def _send_file(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    if not files:
        raise Refused(400, "Bad Request: there is no file in the request")
    member, upload = next(iter(files.items()))
    sent = server._send(bot, parameters, upload)
    file_id = server.keep_file(upload.content, upload.name)
    file = {"file_id": file_id, "file_unique_id": file_id, "file_size": len(upload.content)}
    shown: Any = file | {"file_name": upload.name, "mime_type": upload.content_type}
    if member == "photo":
        shown = [file | {"width": width, "height": height} for width, height in PHOTO_SIZES]
    elif member in ("video", "audio"):
        shown |= {"duration": 1} | ({"width": 640, "height": 480} if member == "video" else {})
    return _shown(bot, sent) | {member: shown} | ({"caption": sent.text} if sent.text else {})


def _get_file(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    file_id = parameters.get("file_id", "")
    if file_id not in server.files:
        raise Refused(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
    size = len(server.files[file_id])
    if size > 20 * 1024 * 1024:
        raise Refused(400, "Bad Request: file is too big")
    return {"file_id": file_id, "file_unique_id": file_id, "file_size": size, "file_path": f"documents/{file_id}"}


def _answer_query(server: Telegram, bot: Bot, parameters: Mapping[str, Any], files: Mapping[str, Upload]) -> Any:
    if not parameters.get("callback_query_id"):
        raise Refused(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
    bot.answered.append(parameters["callback_query_id"])
    return True


def _keyboard(parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The inline keyboard of a message, if Telegram would show it."""
    given = parameters.get("reply_markup")
    keyboard = json.loads(given) if isinstance(given, str) else given
    for row in keyboard["inline_keyboard"] if keyboard else ():
        for button in row:
            if not button["text"]:
                raise Refused(400, "Bad Request: text buttons are unallowed in the inline keyboard")
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refused(400, "Bad Request: BUTTON_DATA_INVALID")
    return keyboard


def _shown(bot: Bot, sent: Sent) -> dict[str, Any]:
    chat = {"id": sent.chat_id, "type": "private", "first_name": "Ada"}
    shown = {"message_id": sent.message_id, "from": bot.user, "chat": chat, "date": int(sent.at)}
    return shown | ({"reply_markup": sent.keyboard} if sent.keyboard else {})


_METHODS: Mapping[str, Callable[..., Any]] = {
    "getme": _get_me,
    "setwebhook": _set_webhook,
    "deletewebhook": _delete_webhook,
    "sendmessage": _send_message,
    "getfile": _get_file,
    "answercallbackquery": _answer_query,
} | {method.lower(): _send_file for method in FILES}
