"""Web chat: a channel whose messages reach the contact through a script of ours on the workspace's own pages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any, ClassVar

from app.channels.base import OWN_SETTINGS, Account, ChannelKind

_ORIGIN = r"^https?://([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$"


class WebChat(ChannelKind):
    """`settings.origins` are the pages that may show the chat; `new_visitors_per_minute` limits how many chats begin.

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
