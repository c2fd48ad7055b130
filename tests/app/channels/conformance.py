"""What the shared suite needs to know of a kind of channel: its played provider, and what that says and sends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.channels.base import Account, ChannelKind
from app.channels.inbound import ReceiptStatus
from app.channels.kinds import CHANNEL_KINDS
from tests.providers import telegram, whatsapp
from tests.providers.base import Provider, Reply
from tests.providers.telegram_people import Person

# A pause that no kind uses by itself, in seconds.
ASKED_PAUSE = 17


class Example(ABC):
    """A kind with a provider that runs. `account` is connected to it, `to` is the peer of a contact.

    Each method named for an arrival returns the bodies of webhooks that bring one: none if the kind has no such thing.
    """

    name: str
    provider: Provider
    account: Account
    to: str
    # The end of the path at which messages are sent.
    sends_at: str
    # What providers answer that throttle, do not accept the credentials, refuse a message, or tell of an opt-out.
    throttle: Reply
    no_credentials: Reply
    refusal: Reply
    opt_out: Reply

    @property
    def kind(self) -> ChannelKind:
        return CHANNEL_KINDS[self.name]

    @abstractmethod
    def headers(self, body: bytes) -> Mapping[str, str]:
        """The headers with which the provider sends a webhook, by names in lower case."""

    @abstractmethod
    def texts(self) -> Sequence[str | None]:
        """The texts of what the provider has taken, in order."""

    @abstractmethod
    def files(self) -> Sequence[bytes]:
        """The files of what the provider has taken, in order."""

    @abstractmethod
    def received(self, text: str) -> list[bytes]:
        """A contact writes."""

    @abstractmethod
    def offered(self) -> Sequence[tuple[str, str]]:
        """Identifier and label of each button of what the provider has taken last, in order."""

    @abstractmethod
    def pressed(self, button_id: str, label: str) -> list[bytes]:
        """A contact presses a button."""

    @abstractmethod
    def edited(self, text: str) -> list[bytes]:
        """A contact writes, and then changes what it wrote to this."""

    @abstractmethod
    def echoed(self, text: str) -> list[bytes]:
        """The business writes in the provider's own app."""

    @abstractmethod
    def receipt(self, provider_id: str, message_id: str, status: ReceiptStatus) -> list[bytes]:
        """Something has become of a message."""

    @abstractmethod
    def opted_out(self) -> list[bytes]:
        """A contact wants no messages."""

    @abstractmethod
    def moved(self) -> list[bytes]:
        """A contact changes the number."""

    @abstractmethod
    def with_file(self, content: bytes) -> list[bytes]:
        """A contact sends a file."""

    @abstractmethod
    def in_group(self, text: str) -> list[bytes]:
        """Somebody writes in a group."""


class TelegramExample(Example):
    name, to, sends_at = "telegram", str(Person().id), "/sendMessage"
    throttle = telegram.throttled(ASKED_PAUSE)
    no_credentials = telegram.refused(401, "Unauthorized")
    refusal = telegram.refused(400, "Bad Request: chat not found")
    opt_out = telegram.refused(403, "Forbidden: bot was blocked by the user")

    def __init__(self, directory: Path) -> None:
        self.provider = self.server = telegram.Telegram(directory)
        self.provider.start()
        credentials = self.kind.fresh_credentials({"bot_token": telegram.TOKEN})
        hook = "https://bellhop.test/hooks/telegram/chn_1"
        self.account = Account("chn_1", {}, credentials, self.provider.url, hook)

    def headers(self, body: bytes) -> Mapping[str, str]:
        return {"x-telegram-bot-api-secret-token": self.account.credentials["hook_secret"]}

    def texts(self) -> Sequence[str | None]:
        return [sent.text for sent in self.server.bot.sent]

    def files(self) -> Sequence[bytes]:
        return [sent.file.content for sent in self.server.bot.sent if sent.file]

    def received(self, text: str) -> list[bytes]:
        return [_dumped(Person().writes(text))]

    def offered(self) -> Sequence[tuple[str, str]]:
        keyboard = self.server.bot.sent[-1].keyboard
        assert keyboard is not None
        return [(each["callback_data"], each["text"]) for row in keyboard["inline_keyboard"] for each in row]

    def pressed(self, button_id: str, label: str) -> list[bytes]:
        keyboard = {"inline_keyboard": [[{"text": label, "callback_data": button_id}]]}
        sent = telegram.Sent(Person().id, 1, "?", 1_790_000_000, keyboard=keyboard)
        return [_dumped(Person().presses(sent, button_id))]

    def edited(self, text: str) -> list[bytes]:
        first = Person().writes("Hi")
        return [_dumped(first), _dumped(Person().edits(first, text))]

    def echoed(self, text: str) -> list[bytes]:
        return []

    def receipt(self, provider_id: str, message_id: str, status: ReceiptStatus) -> list[bytes]:
        return []

    def opted_out(self) -> list[bytes]:
        return [_dumped(Person().blocks())]

    def moved(self) -> list[bytes]:
        return []

    def with_file(self, content: bytes) -> list[bytes]:
        file_id = self.server.keep_file(content, "bill.pdf")
        document = {"file_id": file_id, "file_unique_id": file_id, "mime_type": "application/pdf"}
        return [_dumped(Person().sends(document=document))]

    def in_group(self, text: str) -> list[bytes]:
        group = {"id": -100_123, "type": "supergroup", "title": "Friends"}
        return [_dumped(Person().sends(text=text, chat=group))]


class WhatsAppExample(Example):
    name, to, sends_at = "whatsapp", whatsapp.PHONE, "/messages"
    throttle = whatsapp.refusal(130429, "Rate limit hit", 429, **{"Retry-After": str(ASKED_PAUSE)})
    no_credentials = whatsapp.refusal(190, "Error validating access token", 401)
    refusal = whatsapp.refusal(131026, "Message undeliverable")
    opt_out = whatsapp.refusal(131050, "User has stopped marketing messages")

    def __init__(self, directory: Path) -> None:
        self.provider = self.server = whatsapp.WhatsAppServer(directory)
        self.provider.start()
        self.account = self.server.account
        self._count = 0

    def headers(self, body: bytes) -> Mapping[str, str]:
        return {name.lower(): value for name, value in whatsapp.signed(body).items()}

    def texts(self) -> Sequence[str | None]:
        return [each.get("text", {}).get("body") for each in self.server.messages.values()]

    def files(self) -> Sequence[bytes]:
        kinds = ("image", "document", "video", "audio")
        sent = [each[kind]["id"] for each in self.server.messages.values() for kind in kinds if kind in each]
        return [self.server.media[media_id].content for media_id in sent]

    def received(self, text: str) -> list[bytes]:
        return [self._webhook(messages=[whatsapp.message(self._wamid(), text=text)])]

    def offered(self) -> Sequence[tuple[str, str]]:
        action = list(self.server.messages.values())[-1]["interactive"]["action"]
        rows = [row for section in action.get("sections", ()) for row in section["rows"]]
        return [(each["id"], each["title"]) for each in [*(one["reply"] for one in action.get("buttons", ())), *rows]]

    def pressed(self, button_id: str, label: str) -> list[bytes]:
        replies = [{"type": kind, kind: {"id": button_id, "title": label}} for kind in ("button_reply", "list_reply")]
        messages = [whatsapp.message(self._wamid(), interactive=reply) for reply in replies]
        return [self._webhook(messages=[each]) for each in messages]

    def edited(self, text: str) -> list[bytes]:
        first = self._wamid()
        edit = {"original_message_id": first, "message": {"type": "text", "text": {"body": text}}}
        messages = (whatsapp.message(first, text="Hi"), whatsapp.message(self._wamid(), edit=edit))
        return [self._webhook(messages=[each]) for each in messages]

    def echoed(self, text: str) -> list[bytes]:
        echo = whatsapp.echo(self._wamid(), text=text)
        return [whatsapp.webhook("smb_message_echoes", contacts=[whatsapp.person()], message_echoes=[echo])]

    def receipt(self, provider_id: str, message_id: str, status: ReceiptStatus) -> list[bytes]:
        statuses = [whatsapp.status(provider_id, status, biz_opaque_callback_data=message_id)]
        return [self._webhook(statuses=statuses)]

    def opted_out(self) -> list[bytes]:
        wish = {"wa_id": whatsapp.PHONE, "timestamp": "1795000000", "value": "stop"}
        return [whatsapp.webhook("user_preferences", contacts=[whatsapp.person()], user_preferences=[wish])]

    def moved(self) -> list[bytes]:
        system = {"type": "user_changed_number", "wa_id": "33612345678", "body": "Ada changed"}
        return [whatsapp.webhook(messages=[whatsapp.message(self._wamid(), system=system)])]

    def with_file(self, content: bytes) -> list[bytes]:
        document = {"id": self.server.keep("bill.pdf", "application/pdf", content), "mime_type": "application/pdf"}
        return [self._webhook(messages=[whatsapp.message(self._wamid(), document=document)])]

    def in_group(self, text: str) -> list[bytes]:
        return [self._webhook(messages=[whatsapp.message(self._wamid(), text=text) | {"group_id": "g.1"}])]

    def _webhook(self, **value: object) -> bytes:
        return whatsapp.webhook(contacts=[whatsapp.person()], **value)

    def _wamid(self) -> str:
        self._count += 1
        return f"wamid.in{self._count}"


# A kind without a provider has its own tests: what it offers is our own pages.
EXAMPLES: Mapping[str, type[TelegramExample] | type[WhatsAppExample]] = {
    example.name: example for example in (TelegramExample, WhatsAppExample)
}


def with_credentials(account: Account, **credentials: str) -> Account:
    """The account with other credentials beside its own."""
    return replace(account, credentials={**account.credentials, **credentials})


def _dumped(update: Mapping[str, object]) -> bytes:
    return telegram.json.dumps(update).encode()


def places(document: Any) -> list[tuple[Any, Any]]:
    """Every member and item of the document, at any depth."""
    if not isinstance(document, (dict, list)):
        return []
    names = list(document) if isinstance(document, dict) else list(range(len(document)))
    return [place for name in names for place in ((document, name), *places(document[name]))]
