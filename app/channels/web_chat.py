"""Web chat: a channel that reaches contacts through our script on the workspace's own pages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from app import bounds
from app.channels.base import OWN_SETTINGS, Account, ChannelKind, Field, Form

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
    """A chat on the workspace's own pages. `settings.origins`: the pages that may show it.

    Visitors see `greeting`, `color`, `picture` and `opening_hours`. The hours are in the workspace's time zone. A span
    that ends no later than it begins ends on the next day. The only credential signs visitors' identities.
    """

    name: ClassVar[str] = "web_chat"
    in_words: ClassVar[str] = "the web chat"
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

    form = Form(
        "Web chat",
        "A chat on your own pages, by a script that you paste in.",
        settings=(
            Field(
                "origins",
                "Pages that may show it",
                "Their origins, one a line, such as https://shop.example.",
                "Give origins such as https://shop.example, without a path, at most 50.",
                is_list=True,
            ),
            Field(
                "new_visitors_per_minute",
                "New visitors a minute",
                "Others are asked to try again, so that your inbox cannot be flooded. At most 6,000.",
                "Give a number from 1 to 6,000.",
                otherwise=bounds.NEW_VISITORS_PER_CHANNEL.most,
            ),
        ),
        afterwards="Paste this line into your pages, before </body>:",
        steps=(
            "Enter below which pages may show the chat: scheme and host, such as https://shop.example, and the port if "
            "the address has one. Leave the path out, and give a line to www.shop.example, too, if your shop has both.",
            "Choose Connect. The chat has no provider that has to accept it.",
            "Copy the secret from the next page if your server is to say who a visitor is. It is shown once.",
            "Copy the line with the script from the channel's page, and paste it into your pages before </body>.",
        ),
        name_hint="Visitors see it above the chat.",
    )

    def fresh_credentials(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the secret that signs visitors' identities: the given one, or a new one."""
        return {"secret": given.get("secret") or f"chs_{secrets.token_urlsafe(32)}"}

    def signature(self, account: Account, user: str) -> str:
        """Returns the signature that proves a user's identity: HMAC-SHA256 in hexadecimal."""
        return hmac.new(account.credentials["secret"].encode(), user.encode(), hashlib.sha256).hexdigest()

    def is_signed(self, account: Account, user: str, signature: str) -> bool:
        """Whether the signature is the user's, by the channel's secret. False without a secret."""
        if not account.credentials.get("secret"):
            return False
        return hmac.compare_digest(self.signature(account, user).encode(), signature.lower().encode())
