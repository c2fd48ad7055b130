"""Telegram: the requests and answers of the Bot API (https://core.telegram.org/bots/api)."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import quote

from app.channels import multipart, telegram_updates
from app.channels.base import (
    OWN_SETTINGS,
    Account,
    ChannelKind,
    Field,
    File,
    Form,
    Outcome,
    Outgoing,
    Rate,
    Request,
    Verdict,
)
from app.channels.inbound import Arrival, Media
from app.channels.provider_data import pause_of
from app.channels.verdicts import PAUSE_SECONDS, broken, document_of, repeatable, unanswered, unreadable
from app.lib import json
from app.outbound import Answer

# The kinds of updates that `arrivals` reads. Telegram is told to send no others.
_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
# The types of files that chats show inline, with their method and field. Others are sent as documents.
_SHOWN = {
    "image/jpeg": ("sendPhoto", "photo"),
    "image/png": ("sendPhoto", "photo"),
    "video/mp4": ("sendVideo", "video"),
    "audio/mpeg": ("sendAudio", "audio"),
    "audio/mp4": ("sendAudio", "audio"),
}
_MOST_PHOTO_BYTES = 10_000_000
# The longest detail that is kept, in characters.
_MOST_DETAIL = 300
# The beginnings of Telegram's errors for files that it accepts only as documents, such as PHOTO_INVALID_DIMENSIONS.
_NOT_SHOWN = ("PHOTO_", "IMAGE_", "VIDEO_", "AUDIO_")
# `(?!\n)`: Python's "$" also matches before a line break at the end.
TOKEN = r"^[0-9]{3,20}:[A-Za-z0-9_-]{20,100}$(?!\n)"


class Telegram(ChannelKind):
    """A bot, to which contacts have to write first, because bots cannot begin a chat.

    An identity's `external_id` is the user's number; `peer` is the chat's. A message's `provider_id` is the chat's
    number, a colon and the message's number, which is unique only within the chat.
    """

    name = "telegram"
    in_words = "Telegram"
    most_characters = 4096
    most_caption = 1024
    confirms_presses = True
    channel_rate = Rate(30)
    conversation_rate = Rate(1)
    credentials_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "bot_token": {"type": "string", "pattern": TOKEN, "x-form": "a bot token, such as '123456789:AAE…'"}
        },
        "required": ["bot_token"],
        "additionalProperties": False,
    }
    settings_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": OWN_SETTINGS,
        "additionalProperties": False,
    }

    form = Form(
        "Telegram",
        "A bot that people write to. Make one with @BotFather in Telegram.",
        credentials=(
            Field(
                "bot_token",
                "Token of the bot",
                "From @BotFather, such as 123456789:AAE….",
                "This is not a bot's token. @BotFather shows it.",
            ),
        ),
        afterwards="Telegram sends messages to this address as soon as it accepts the bot. There is nothing to enter "
        "anywhere:",
        steps=(
            "Open a chat with @BotFather in Telegram, and send /newbot. For a bot that you have, send /mybots, choose "
            "it, and press API Token; its present webhook is replaced.",
            "Choose a name, which people see, and a username that ends in “bot”.",
            "Copy the token from the answer into the field below. Who has it controls the bot.",
            "Choose Connect. The webhook is set by itself.",
            "Write to your bot to try it. A bot cannot write first, so give people the link t.me/ and its username.",
        ),
    )

    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the token and a new secret, which Telegram repeats in every webhook."""
        return {"bot_token": given["bot_token"], "hook_secret": secrets.token_hex(32)}

    def connecting(self, account: Account) -> Sequence[Request]:
        """Returns the requests for the bot's identity and for the registration of the webhook."""
        hook = {
            "url": account.hook_address,
            "secret_token": account.credentials["hook_secret"],
            "allowed_updates": _UPDATES,
        }
        return [_call(account, "getMe", {}), _call(account, "setWebhook", hook)]

    def connected(self, account: Account, answers: Sequence[Answer]) -> tuple[Verdict, str | None]:
        """Returns the verdict on the first failed answer, else SENT; and the bot's number or None."""
        bot = result_of(answers[0]) if answers else None
        number = str(bot["id"]) if isinstance(bot, dict) and "id" in bot else None
        for answer in answers:
            verdict = repeatable(verdict_of(answer))
            if verdict.outcome is not Outcome.SENT:
                return verdict, number
        return Verdict(Outcome.SENT), number

    def disconnecting(self, account: Account) -> Sequence[Request]:
        """Returns the request that removes the webhook."""
        return [_call(account, "deleteWebhook", {})]

    def sending(self, account: Account, outgoing: Outgoing, prepared: str | None) -> Request:
        """Returns the request for a file with its caption, or for a text."""
        if outgoing.file is None:
            text = {"chat_id": _chat(outgoing), "text": outgoing.text or ""}
            return _call(account, "sendMessage", text | _keyboard(outgoing))
        method, field = _way_of(outgoing.file)
        fields = {"chat_id": outgoing.to} | ({"caption": outgoing.text} if outgoing.text else {})
        fields |= {name: json.dumps(value).decode() for name, value in _keyboard(outgoing).items()}
        file = outgoing.file
        content_type, body = multipart.encode(fields, field, file.name, file.content_type, file.content)
        return Request("POST", _address(account, method), {"Content-Type": content_type}, body)

    def sent(self, outgoing: Outgoing, answer: Answer) -> Verdict:
        """Returns the verdict. SENT has the message's identifier; UNKNOWN if it may have been accepted."""
        return verdict_of(answer, chat=outgoing.to)

    def instead(self, outgoing: Outgoing, answer: Answer) -> Outgoing | None:
        """Returns the message with its file as a document, if Telegram refuses to show the file.

        For example, a photo may be too wide. None if Telegram refused the message for another reason.
        """
        file, verdict = outgoing.file, verdict_of(answer)
        if file is None or _way_of(file)[0] == "sendDocument" or verdict.outcome is not Outcome.FAILED:
            return None
        is_refused = any(reason in (verdict.detail or "").upper() for reason in _NOT_SHOWN)
        return replace(outgoing, file=replace(file, content_type="application/octet-stream")) if is_refused else None

    def is_genuine(self, account: Account, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the webhook repeats our secret."""
        secret = account.credentials.get("hook_secret", "")
        given = headers.get("x-telegram-bot-api-secret-token", "")
        return bool(secret) and hmac.compare_digest(given.encode(), secret.encode())

    def arrivals(self, account: Account, body: bytes) -> Sequence[Arrival]:
        """Returns the arrival in a private chat's update; none for groups and others. Raises BadPayload."""
        arrival = telegram_updates.read(body)
        return [] if arrival is None else [arrival]

    def locating(self, account: Account, media: Media) -> Request:
        """Returns the request for a file's path, which works for an hour."""
        return _call(account, "getFile", {"file_id": media.ref})

    def located(self, account: Account, answer: Answer) -> Request | Verdict:
        """Returns the request that downloads the file, or the verdict if there is none.

        The verdict is FAILED for files that bots cannot get, such as those above 20 MB.
        """
        file = result_of(answer)
        path = file.get("file_path") if isinstance(file, dict) else None
        if isinstance(path, str) and path:
            token = account.credentials["bot_token"]
            return Request("GET", f"{account.api_url}/file/bot{token}/{quote(path)}")
        verdict = repeatable(verdict_of(answer))
        if verdict.outcome is Outcome.SENT:
            return Verdict(Outcome.FAILED, code="no_file", detail="Telegram does not offer this file.")
        return verdict

    def reading(self, account: Account, peer: str, provider_id: str) -> Request | None:
        """Returns the request that confirms a press; None for a message: bots cannot mark one as read."""
        query = telegram_updates.query_of(provider_id)
        return _call(account, "answerCallbackQuery", {"callback_query_id": query}) if query else None


def _keyboard(outgoing: Outgoing) -> dict[str, Any]:
    """Puts each button in a row of its own, so that its label fits."""
    if not outgoing.buttons:
        return {}
    keys = [[{"text": each["label"], "callback_data": each["id"]}] for each in outgoing.buttons]
    return {"reply_markup": {"inline_keyboard": keys}}


def _call(account: Account, method: str, parameters: Mapping[str, Any]) -> Request:
    headers = {"Content-Type": "application/json"}
    return Request("POST", _address(account, method), headers, json.dumps(parameters))


def _address(account: Account, method: str) -> str:
    return f"{account.api_url}/bot{account.credentials['bot_token']}/{method}"


def _chat(outgoing: Outgoing) -> int | str:
    return int(outgoing.to) if outgoing.to.lstrip("-").isdecimal() else outgoing.to


def _way_of(file: File) -> tuple[str, str]:
    """Returns the API's method that sends the file, and the form's field for it."""
    method, field = _SHOWN.get(file.content_type.partition(";")[0].strip().lower(), ("sendDocument", "document"))
    if method == "sendPhoto" and len(file.content) > _MOST_PHOTO_BYTES:
        return "sendDocument", "document"
    return method, field


def result_of(answer: Answer) -> Any:
    """Returns the result in a successful answer; None in any other."""
    said = document_of(answer)
    return said.get("result") if answer.ok and said.get("ok") is True else None


def verdict_of(answer: Answer, chat: str = "") -> Verdict:
    """Returns the verdict on a request. For a message to `chat`, SENT has its identifier."""
    if answer.status is None:
        return unanswered(answer)
    said = document_of(answer)
    if answer.ok:
        if said.get("ok") is not True:
            return unreadable("Telegram")
        return Verdict(Outcome.SENT, _identifier(said.get("result"), chat))
    detail = str(said.get("description") or answer.error_without_target or "")[:_MOST_DETAIL]
    asked = _asked_pause(answer, said)
    # Telegram asks for a retry, so the request was not accepted, whatever the status says.
    if answer.status == 429 or asked is not None:
        seconds = pause_of(asked, PAUSE_SECONDS)
        return Verdict(Outcome.LATER, code="throttled", detail=detail, pause_seconds=seconds, pauses="channel")
    if answer.status >= 500:
        return broken(detail)
    return _refusal(answer.status, said, detail)


def _refusal(status: int, said: Mapping[str, Any], detail: str) -> Verdict:
    # 401 means a revoked token, 404 an unknown one. Both count only in Telegram's own format, not from a proxy.
    if status in (401, 404) and said.get("ok") is False:
        return Verdict(Outcome.UNAUTHORIZED, code="unauthorized", detail=detail)
    is_opt_out = status == 403 and any(word in detail.lower() for word in ("blocked", "deactivated"))
    code = "blocked" if is_opt_out else {403: "forbidden", 413: "too_large"}.get(status, "rejected")
    return Verdict(Outcome.FAILED, code=code, detail=detail, is_opt_out=is_opt_out)


def _asked_pause(answer: Answer, said: Mapping[str, Any]) -> object:
    """Returns the pause in seconds that Telegram asks for, unchecked; None if it asks for none."""
    parameters = said.get("parameters")
    asked = parameters.get("retry_after") if isinstance(parameters, dict) else None
    if asked is None and answer.status == 429:
        asked = dict(answer.headers).get("retry-after")
    return asked


def _identifier(result: Any, chat: str) -> str | None:
    number = result.get("message_id") if isinstance(result, dict) else None
    return None if number is None else f"{chat}:{number}"
