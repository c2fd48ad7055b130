"""The bodies that create and change channels."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import fields, post_load, validate

from app.channels.base import ChannelKind
from app.channels.kinds import CHANNEL_KINDS
from app.domain.channels import channels
from app.errors import Invalid
from app.lib import normalization
from app.lib.schemas import Formatted, RequestBody, about

_NAME = {"description": "For people; it need not be unique.", "example": "Shop"}
_SETTINGS = {
    "description": "Settings of the kind, by name. `reopen`: whether a message after a conversation was "
    "closed reopens it, which is the default, or opens another. `assignment`: `none`, or `balanced`, which assigns "
    "conversations to the available member with the fewest open ones, of those in `member_ids` (null: all). "
    "Of a web chat also what its visitors see: `greeting`, `color`, `picture` and `opening_hours`; null: none.",
}
_CREDENTIALS = {
    "description": "The credentials of the account at the provider: `bot_token` for Telegram; `access_token`, "
    "`app_secret` and `verify_token` for WhatsApp. Never shown again.",
    "writeOnly": True,
}


def _unsuitable(kind: ChannelKind) -> dict[str, Any]:
    """Returns the schema of the bodies that the kind of channel refuses."""
    suitable: dict[str, Any] = {"settings": kind.settings_schema, "credentials": kind.credentials_schema or {"not": {}}}
    required = [name for name, shape in suitable.items() if shape.get("required")]
    return {
        "type": "object",
        "properties": {"kind": {"const": kind.name}},
        "required": ["kind"],
        "not": {"type": "object", "properties": suitable, "required": required},
    }


class ChannelCreate(RequestBody):
    """A channel to create. Its `kind` decides which settings and credentials are valid."""

    # With the simpler oneOf, generated clients would lose the fields.
    described: ClassVar[dict[str, Any]] = {
        "not": {"anyOf": [_unsuitable(kind) for kind in CHANNEL_KINDS.values()]},
        "example": {"kind": "web_chat", "name": "Shop", "settings": {"origins": ["https://shop.example"]}},
    }
    kind = fields.String(
        required=True,
        validate=validate.OneOf(list(CHANNEL_KINDS), error="There is no kind of channel '{input}'."),
        metadata=about("What the channel connects to.", example="web_chat"),
    )
    name = Formatted(normalization.name, required=True, metadata={**normalization.NAME_SCHEMA, **_NAME})
    settings = fields.Dict(load_default=dict, metadata=_SETTINGS | {"example": {"origins": ["https://shop.example"]}})
    credentials = fields.Dict(metadata=_CREDENTIALS)

    @post_load
    def suits_its_kind(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Raises Invalid for settings or credentials that the kind cannot use. Changes nothing."""
        kind = CHANNEL_KINDS[data["kind"]]
        faults = [
            *channels.settings_faults(kind, data["settings"]),
            *channels.credentials_faults(kind, data.get("credentials")),
        ]
        if faults:
            raise Invalid(*faults)
        return data


class ChannelPatch(RequestBody):
    """The fields of a channel to change. `settings` are merged with the existing ones."""

    name = Formatted(normalization.name, metadata={**normalization.NAME_SCHEMA, **_NAME})
    settings = fields.Dict(
        metadata=about("The settings to change; the others stay as they are.", example={"reopen": False})
    )


class Reauthorization(RequestBody):
    """New credentials for a channel; none for a web chat, which gets a new secret."""

    credentials = fields.Dict(
        metadata=_CREDENTIALS
        | {"description": f"{_CREDENTIALS['description']} Not for web chat, which gets a new secret."}
    )
