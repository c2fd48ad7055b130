"""Web chat: a channel whose messages reach the contact through a script of ours on the workspace's own pages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from app.channels.base import OWN_SETTINGS, Account, ChannelKind

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_CLOCK = {
    "type": "string",
    "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
    "x-form": "a time of day such as 09:00",
}
_SPANS = {
    "type": "array",
    "maxItems": 4,
    "items": {
        "type": "object",
        "required": ["from", "to"],
        "additionalProperties": False,
        "properties": {"from": _CLOCK, "to": _CLOCK},
    },
}
_ORIGIN = r"^https?://([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$"


class WebChat(ChannelKind):
    """`settings.origins` are the pages that may show the chat; `new_visitors_per_minute` limits how many chats begin.

    `greeting`, `color`, `picture` (an address that the visitor's browser loads) and `opening_hours` are what the
    visitor sees. The hours follow the workspace's clock; a span that ends no later than it begins ends the next day.
    The one credential signs who a visitor is.
    """

    name: ClassVar[str] = "web_chat"
    has_provider: ClassVar[bool] = False
    most_characters: ClassVar[int] = 4096
    most_caption: ClassVar[int] = 4096
    most_files: ClassVar[int] = 5
    credentials_schema: ClassVar[Mapping[str, Any] | None] = None
    settings_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "required": ["origins"],
        "additionalProperties": False,
        "properties": {
            "origins": {
                "type": "array",
                "maxItems": 50,
                "uniqueItems": True,
                "items": {
                    "type": "string",
                    "maxLength": 255,
                    "pattern": _ORIGIN,
                    "x-form": "the origin of a page in small letters, such as https://shop.example",
                },
            },
            **OWN_SETTINGS,
            "new_visitors_per_minute": {"type": "integer", "minimum": 1, "maximum": 6_000},
            "greeting": {"type": ["string", "null"], "minLength": 1, "maxLength": 500},
            "color": {
                "type": ["string", "null"],
                "pattern": "^#[0-9a-f]{6}$",
                "x-form": "a color of # and six digits or small letters up to f, such as #1f4fd8",
            },
            "picture": {
                "type": ["string", "null"],
                "maxLength": 500,
                "pattern": "^https://[!#-;=?-~]+$",
                "x-form": "the address of a picture, which begins with https://",
            },
            "opening_hours": {
                "type": ["object", "null"],
                "additionalProperties": False,
                "properties": dict.fromkeys(DAYS, _SPANS),
            },
        },
    }

    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        """The secret that signs visitors' identities: the one given, or a new one."""
        return {"secret": given.get("secret") or f"chs_{secrets.token_urlsafe(32)}"}

    def signature(self, account: Account, user: str) -> str:
        """The proof of identity that the workspace's server gives its signed-in user: HMAC-SHA256 in hexadecimal."""
        return hmac.new(account.credentials["secret"].encode(), user.encode(), hashlib.sha256).hexdigest()

    def is_signed(self, account: Account, user: str, signature: str) -> bool:
        """Whether the signature is that of the user, by the channel's secret. False without a secret."""
        if not account.credentials.get("secret"):
            return False
        return hmac.compare_digest(self.signature(account, user).encode(), signature.lower().encode())
