"""The interface of a kind of channel: requests to its provider, and the meaning of the answers.

Nothing here opens connections, stores data or decides what to do. `app/domain` does that with the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, ClassVar, Literal

from app.channels.inbound import Arrival, Media
from app.channels.provider_data import ProviderData, identifier_of, pause_of
from app.outbound import Answer

# Settings that every kind of channel has, and that are never sent to the provider.
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
    """A rate limit: `per_second` on average, and `burst` at once."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Account:
    """A channel, as its kind sees it. `api_url` has no trailing slash."""

    channel_id: str
    settings: Mapping[str, Any]
    credentials: Mapping[str, str] = field(repr=False)
    api_url: str
    hook_address: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request to make to the provider. It uses HTTPS unless the settings give an http:// address."""

    method: str
    address: str = field(repr=False)  # Telegram's addresses contain the token
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class File:
    """A file to send."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send to `to`, with a text, a template or a file. `text` is the caption of a file.

    Each of `buttons` has an `id` and a `label`. Buttons are sent only with a text.
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
    FAILED = "failed"  # permanently, for a reason in the message
    LATER = "later"  # not accepted: retry after the pause (throttled, or no byte was sent)
    UNAUTHORIZED = "unauthorized"  # the credentials are refused: the channel needs new ones
    UNKNOWN = "unknown"  # the request may or may not have been accepted


@dataclass(frozen=True, slots=True)
class Verdict(ProviderData):
    """The meaning of an answer. `code` and `detail` say why it is not SENT; users may see `detail`.

    `pauses`: what the pause applies to. `is_opt_out`: the contact has blocked us.
    """

    outcome: Outcome
    provider_id: str | None = None
    code: str | None = None
    detail: str | None = None
    pause_seconds: float = 0.0
    pauses: Literal["channel", "conversation"] = "conversation"
    is_opt_out: bool = False

    def kept(self, name: str, value: Any) -> Any:
        """Returns a storable value: pauses become finite and short, invalid identifiers None."""
        if name == "pause_seconds":
            return pause_of(value, 0.0)
        if name == "provider_id":
            return identifier_of(value)
        return ProviderData.kept(self, name, value)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind's form, for a setting or a credential of the same name.

    `wrong`: the message for an invalid value. `otherwise`: the default of a number.
    """

    name: str
    label: str
    hint: str
    wrong: str
    is_list: bool = False
    otherwise: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The form that connects a channel of a kind, and the instructions before and after.

    `steps`: what to do at the provider, in order. One of them is filling in the fields.
    """

    title: str
    about: str = ""
    settings: Sequence[Field] = ()
    credentials: Sequence[Field] = ()
    afterwards: str = "Messages arrive at this address:"
    steps: Sequence[str] = ()
    name_hint: str = "For your colleagues; contacts do not see it."


class ChannelKind(ABC):
    """A kind of channel. Subclasses are stateless; `app/channels/kinds.py` has an instance of each."""

    name: ClassVar[str]
    # False if messages reach the contact through our own pages. There is no provider then, so the methods that make
    # requests, or read answers and webhooks, are never called; only `fresh_credentials` is needed.
    has_provider: ClassVar[bool] = True
    most_characters: ClassVar[int]
    most_caption: ClassVar[int]
    most_files: ClassVar[int] = 1
    # The most buttons of a message with a file; None if a file makes no difference.
    most_buttons_beside_file: ClassVar[int | None] = None
    # Whether the contact's app waits for `reading` after a button was pressed.
    confirms_presses: ClassVar[bool] = False
    channel_rate: ClassVar[Rate | None] = None
    conversation_rate: ClassVar[Rate | None] = None
    # Whether a template is sent instead of text and files. Other kinds ignore it.
    sends_templates: ClassVar[bool] = False
    # How long after the contact's last message free text may be sent; None for always.
    window: ClassVar[timedelta | None] = None
    # Whether the API may write to somebody who has never written (on WhatsApp, with a template).
    may_open: ClassVar[bool] = False
    most_hook_bytes: ClassVar[int] = 1_048_576
    # JSON Schemas of the kind's fields in `POST channels`.
    credentials_schema: ClassVar[Mapping[str, Any] | None] = None
    settings_schema: ClassVar[Mapping[str, Any]]
    # The form that connects a channel on a page; None if only the API connects channels of this kind.
    form: ClassVar[Form | None] = None
    # The kind in a sentence, after "on".
    in_words: ClassVar[str]

    def recipient(self, to: str) -> str:
        """Returns the contact's identifier at the provider for an address such as a phone number.

        Raises ValueError, with a sentence for the caller.
        """
        return to

    def most_text(self, files: int, buttons: int) -> int:
        """Returns the longest text beside that many files and buttons, in the units of `length`."""
        return self.most_caption if files else self.most_characters

    def list_label(self, buttons: int) -> str | None:
        """Returns the label of the button that opens the buttons as a list; None if they are not a list."""
        return None

    def length(self, text: str) -> int:
        """Returns the length of the text as the provider counts it, in the units of `most_characters`."""
        return len(text)

    @abstractmethod
    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the credentials to store: the given ones, and secrets that Bellhop generates."""

    def connecting(self, account: Account) -> Sequence[Request]:
        """Returns the requests that connect the channel: make them in order, until one fails."""
        raise NotImplementedError

    def connected(self, account: Account, answers: Sequence[Answer]) -> tuple[Verdict, str | None]:
        """Returns the meaning of the answers so far, and the account's id at the provider, if known."""
        raise NotImplementedError

    def disconnecting(self, account: Account) -> Sequence[Request]:
        """Returns the requests that end the connection, if the provider has any. Failures are ignored."""
        return ()

    def preparing(self, account: Account, outgoing: Outgoing) -> Request | None:
        """Returns the request to make before `sending`, such as the file's upload; None if there is none."""
        return None

    def template_fault(self, template: Mapping[str, Any]) -> str | None:
        """Returns why the provider would refuse the template, as a sentence; None if nothing is known."""
        return None

    def prepared(self, answer: Answer) -> str | Verdict:
        """Returns the part that `sending` needs; after a failure, the verdict, which is never UNKNOWN."""
        raise NotImplementedError

    def sending(self, account: Account, outgoing: Outgoing, prepared: str | None) -> Request:
        """Returns the request that sends the message."""
        raise NotImplementedError

    def sent(self, outgoing: Outgoing, answer: Answer) -> Verdict:
        """Returns the meaning of the answer; LATER only if the message was certainly not accepted."""
        raise NotImplementedError

    def instead(self, outgoing: Outgoing, answer: Answer) -> Outgoing | None:
        """Returns the message to send, without `preparing`, after a refusal of this one; None if none."""
        return None

    def challenged(self, account: Account, query: Mapping[str, str]) -> str | None:
        """Returns the answer to a GET that asks whether the hook's address is ours; None to refuse."""
        return None

    def is_genuine(self, account: Account, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether the provider sent this webhook; False without a secret. Header names are in lower case."""
        raise NotImplementedError

    def arrivals(self, account: Account, body: bytes) -> Sequence[Arrival]:
        """Returns the arrivals in a genuine webhook, in order. Leaves out groups. Raises BadPayload."""
        raise NotImplementedError

    def locating(self, account: Account, media: Media) -> Request:
        """Returns the request that asks for a file's address."""
        raise NotImplementedError

    def located(self, account: Account, answer: Answer) -> Request | Verdict:
        """Returns the request that downloads the file, or why there is none; never SENT."""
        raise NotImplementedError

    def reading(self, account: Account, peer: str, provider_id: str) -> Request | None:
        """Returns the request that marks a message or press as read; None if the provider has none."""
        return None
