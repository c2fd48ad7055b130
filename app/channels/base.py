"""The interface of a kind of channel: requests to its provider, and the meaning of the provider's answers and webhooks.

Nothing here connects, stores or decides: `app/domain` does, with what a kind returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar, Literal

from app.channels.inbound import Arrival, Media
from app.channels.said import Said, identifier_of, pause_of
from app.outbound import Answer

# Settings of every kind, of which its provider does not know.
OWN_SETTINGS: Mapping[str, Any] = {
    "reopen": {"type": "boolean"},
    "assignment": {"type": "string", "enum": ["none", "balanced"]},
    "member_ids": {
        "type": ["array", "null"],
        "minItems": 1,
        "maxItems": 500,
        "uniqueItems": True,
        "items": {
            "type": "string",
            "pattern": "^mem_[0-7][0-9a-hjkmnp-tv-z]{25}$",
            "x-form": "the identifier of a member, which begins with mem_",
        },
    },
}


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something may happen: `per_second` in the long run, and `burst` at once."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Account:
    """A channel as its kind sees it. `api_url` has no slash at its end; `hook_address` is where webhooks arrive."""

    channel_id: str
    settings: Mapping[str, Any]
    credentials: Mapping[str, str] = field(repr=False)
    api_url: str
    hook_address: str


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTPS request to the provider."""

    method: str
    address: str = field(repr=False)  # Telegram's contains the token
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class File:
    """A file to be sent."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be sent to `to`, with text, a template or a file. `text` is the caption of a file.

    `buttons` have an `id` and a `label` each, and come with a text.
    """

    message_id: str
    to: str
    text: str | None
    template: Mapping[str, Any] | None = None
    file: File | None = None
    buttons: Sequence[Mapping[str, str]] = ()


class Outcome(Enum):
    """The outcome of a request to a provider."""

    SENT = "sent"
    FAILED = "failed"  # for good, for a reason of the message
    LATER = "later"  # not taken, and to be tried again after the pause: a throttle, or not a byte had left
    UNAUTHORIZED = "unauthorized"  # the credentials are not accepted: the channel needs new ones
    UNKNOWN = "unknown"  # it may have been taken or not


@dataclass(frozen=True, slots=True)
class Verdict(Said):
    """The meaning of an answer. `code` and `detail` say why it was not SENT; `detail` may be shown to users.

    `pauses` says what the pause holds for. `is_opt_out`: the contact has blocked us.
    """

    outcome: Outcome
    provider_id: str | None = None
    code: str | None = None
    detail: str | None = None
    pause_seconds: float = 0.0
    pauses: Literal["channel", "conversation"] = "conversation"
    is_opt_out: bool = False

    def kept(self, name: str, value: Any) -> Any:
        """What is kept of the field's value: pauses are finite and short, identifiers are ones or None."""
        if name == "pause_seconds":
            return pause_of(value, 0.0)
        if name == "provider_id":
            return identifier_of(value)
        return Said.kept(self, name, value)


class ChannelKind(ABC):
    """A kind of channel. Subclasses are stateless; there is one instance of each in `app/channels/kinds.py`."""

    name: ClassVar[str]
    # False: messages reach the contact through our own pages. No provider is asked for anything, so the methods that
    # make requests, and read answers and webhooks, are never called; only `fresh_credentials` is needed.
    has_provider: ClassVar[bool] = True
    most_characters: ClassVar[int]
    most_caption: ClassVar[int]
    most_files: ClassVar[int] = 1
    # The most buttons of a message with a file; None: as many as without.
    most_buttons_beside_file: ClassVar[int | None] = None
    # Whether the contact's app waits until `reading` has been asked for a button that was pressed.
    confirms_presses: ClassVar[bool] = False
    channel_rate: ClassVar[Rate | None] = None
    conversation_rate: ClassVar[Rate | None] = None
    # Whether a template goes out in place of a message's text and files. Others ignore it.
    sends_templates: ClassVar[bool] = False
    # How long free text may be sent after the contact's latest message; None: always.
    window: ClassVar[timedelta | None] = None
    # Whether the API may write first, to a person who never wrote (WhatsApp: with a template).
    may_open: ClassVar[bool] = False
    most_hook_bytes: ClassVar[int] = 1_048_576
    # JSON Schemas of what `POST channels` takes for this kind.
    credentials_schema: ClassVar[Mapping[str, Any] | None] = None
    settings_schema: ClassVar[Mapping[str, Any]]

    def recipient(self, to: str) -> str:
        """The contact's identifier at the provider for what a caller gives, such as a phone number.

        Raises ValueError with a sentence for the caller.
        """
        return to

    def most_text(self, files: int, buttons: int) -> int:
        """The most characters of a text beside this many files and buttons, in the units of `length`."""
        return self.most_caption if files else self.most_characters

    def list_label(self, buttons: int) -> str | None:
        """The label of the button that opens this many buttons as a list; None: each is a button of its own."""
        return None

    def length(self, text: str) -> int:
        """How long the provider takes the text to be, in the units of `most_characters`."""
        return len(text)

    @abstractmethod
    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        """The credentials to store: those given, and the secrets that Bellhop makes up itself."""

    def connecting(self, account: Account) -> Sequence[Request]:
        """The requests that connect the channel, to be made in order until one fails. Safe to repeat."""
        raise NotImplementedError

    def connected(self, account: Account, answers: Sequence[Answer]) -> tuple[Verdict, str | None]:
        """The meaning of the answers to `connecting` so far, and the provider's identifier of the account."""
        raise NotImplementedError

    def disconnecting(self, account: Account) -> Sequence[Request]:
        """The requests that end the connection, if the provider has any. Failures are ignored."""
        return ()

    def preparing(self, account: Account, outgoing: Outgoing) -> Request | None:
        """The request that has to be made before `sending`, such as an upload of the file; None if there is none."""
        return None

    def template_fault(self, template: Mapping[str, Any]) -> str | None:
        """The sentence that says what the provider would refuse in the template; None if nothing is known."""
        return None

    def prepared(self, answer: Answer) -> str | Verdict:
        """The part of the answer to `preparing` that `sending` needs, or why there is none; never UNKNOWN."""
        raise NotImplementedError

    def sending(self, account: Account, outgoing: Outgoing, prepared: str | None) -> Request:
        """The request that sends the message."""
        raise NotImplementedError

    def sent(self, outgoing: Outgoing, answer: Answer) -> Verdict:
        """The meaning of the answer to `sending`. LATER only if the message cannot have been taken."""
        raise NotImplementedError

    def instead(self, outgoing: Outgoing, answer: Answer) -> Outgoing | None:
        """The message to send instead of one that the answer refuses, without `preparing`; None if none."""
        return None

    def challenged(self, account: Account, query: Mapping[str, str]) -> str | None:
        """The answer to a GET of the hook's address, which proves that it is ours; None if it is refused."""
        return None

    def is_genuine(self, account: Account, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the provider sent this webhook. Names of headers are in lower case. False without a secret."""
        raise NotImplementedError

    def arrivals(self, account: Account, body: bytes) -> Sequence[Arrival]:
        """The arrivals in a genuine webhook, in its order, without those of groups. Raises BadPayload."""
        raise NotImplementedError

    def locating(self, account: Account, media: Media) -> Request:
        """The request that asks where a file is."""
        raise NotImplementedError

    def located(self, account: Account, answer: Answer) -> Request | Verdict:
        """The request that fetches the file, or why there is none; never SENT."""
        raise NotImplementedError

    def reading(self, account: Account, peer: str, provider_id: str) -> Request | None:
        """The request that tells the contact that a message, or a press, was read; None if the provider has none."""
        return None
