"""Arrivals in webhooks: messages, edits, echoes, receipts, blocks and changed identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from app.channels.provider_data import MOST_IDENTIFIER, ProviderData, identifier_of, size_of, storable
from app.lib import json, phones

_IDENTIFIERS = frozenset({"key", "sender", "peer", "provider_id", "recipient", "pressed"})
# The largest provider document that is kept with a message. Larger ones are dropped.
MOST_PAYLOAD_BYTES = 32 * 1024
ReceiptStatus = Literal["sent", "delivered", "read", "failed"]


class BadPayload(Exception):
    """A webhook differs from the provider's documents. `readable`: the arrivals that could be read."""

    def __init__(self, detail: str, readable: Sequence[Arrival] = ()) -> None:
        super().__init__(detail)
        self.readable = readable


@dataclass(frozen=True, slots=True)
class Media(ProviderData):
    """A file at the provider. `locating` needs `ref`; the other fields are as the sender claims."""

    ref: str
    content_type: str | None = None
    name: str | None = None
    bytes: int | None = None

    def kept(self, name: str, value: Any) -> Any:
        """Returns a storable value; None if it is not of the field's type."""
        if name == "bytes":
            return size_of(value)
        return ProviderData.kept(self, name, value) if isinstance(value, str) else None


class _Arrived(ProviderData):
    """An item of a webhook. Identifiers are never altered: two different ones could become equal."""

    __slots__ = ()

    def kept(self, name: str, value: Any) -> Any:
        """Returns a storable value. Raises BadPayload for an identifier that cannot be stored.

        Other invalid values become None: a `phone`, `button_id` or `album`, and a document that is too large.
        """
        if name in _IDENTIFIERS and value is not None and identifier_of(value) is None:
            raise BadPayload(f"An identifier has 1 to {MOST_IDENTIFIER} characters, and no U+0000.")
        if name in ("button_id", "album"):
            return identifier_of(value)
        if name == "phone":
            return value if value is not None and phones.E164.fullmatch(value) else None
        if name in ("payload", "data", "referral"):
            return storable(value) if value and len(json.dumps(value)) <= MOST_PAYLOAD_BYTES else None
        if name == "formers":
            return [self.kept("sender", each) for each in value]
        return ProviderData.kept(self, name, value)


@dataclass(frozen=True, slots=True)
class Received(_Arrived):
    """A message from a contact.

    `key` is unique among all arrivals of the channel, so that a repeated webhook is recognized. `sender` is the
    contact's identifier at the provider, `peer` where answers go. `phone` is E.164 and attested by the provider.
    `button_id`: the button that the contact pressed, in the message whose `provider_id` is `pressed`. The button's
    label is the `text`; None if the provider does not say it. `payload` is the provider's document; None if `text` and
    `media` show all of the message. `data` holds the answers of a form that the contact filled in. `referral` is the
    advertisement that led the contact here, in the provider's format. Messages with the same `album` belong together.
    """

    key: str
    sender: str
    peer: str
    provider_id: str
    at: datetime
    text: str | None
    media: Sequence[Media] = ()
    name: str | None = None
    phone: str | None = None
    locale: str | None = None
    button_id: str | None = None
    pressed: str | None = None
    payload: Mapping[str, Any] | None = None
    data: Mapping[str, Any] | None = None
    referral: Mapping[str, Any] | None = None
    album: str | None = None


@dataclass(frozen=True, slots=True)
class Edited(_Arrived):
    """A contact has changed the text of a message, or has revoked the message: `text` is None."""

    key: str
    sender: str
    provider_id: str
    at: datetime
    text: str | None


@dataclass(frozen=True, slots=True)
class Echoed(_Arrived):
    """A message that the business sent to `recipient` in the provider's own app.

    `peer` and `phone` are the recipient's, as in Received.
    """

    key: str
    recipient: str
    peer: str
    provider_id: str
    at: datetime
    text: str | None
    media: Sequence[Media] = ()
    phone: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt(_Arrived):
    """A report on a sent message. `message_id`: our own id of it, if the provider repeats that."""

    key: str
    recipient: str
    provider_id: str
    at: datetime
    status: ReceiptStatus
    message_id: str | None = None
    code: str | None = None
    detail: str | None = None
    is_opt_out: bool = False


@dataclass(frozen=True, slots=True)
class Blocked(_Arrived):
    """A contact has blocked us, or no longer does."""

    key: str
    sender: str
    at: datetime
    is_blocked: bool


@dataclass(frozen=True, slots=True)
class Moved(_Arrived):
    """A contact's identifier at the provider has changed, for example with a new phone number.

    `formers`: identifiers by which we may know the contact, the most likely first. `sender`, `peer`, `phone`: see
    Received.
    """

    key: str
    sender: str
    peer: str
    at: datetime
    formers: Sequence[str]
    phone: str | None = None


Arrival = Received | Edited | Echoed | Receipt | Blocked | Moved
