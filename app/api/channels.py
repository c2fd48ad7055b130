"""Channels over which a workspace talks to its contacts: a provider's, or its own web chat."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.api.authentication import caller
from app.api.endpoints import SECRET
from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act
from app.channels.kinds import CHANNEL_KINDS
from app.domain.bodies.channels import ChannelCreate, ChannelPatch, Reauthorization
from app.domain.channels import channels
from app.domain.channels.channels import ChannelSchema
from app.errors import Invalid
from app.lib import ids
from app.models.channels import Channel

blueprint = Blueprint("channels", __name__, description="Connections to the providers that carry messages.")


@reads(blueprint, "/channels", "inbox", ChannelSchema, PageQuery)
def list_channels(query: dict[str, Any]) -> Document:
    """List channels, newest first."""
    return page(Channel, query, channels.represent)


@accepts(blueprint, "POST /channels", "inbox", ChannelSchema, ChannelCreate, made=True, secret=SECRET)
def create_channel(body: dict[str, Any]) -> Response:
    """Create a channel, up to 100 in a workspace.

    The provider is asked soon after; `state` says what it answered. Only this response shows the secret of a web chat,
    which signs visitors' identities. Other kinds have none.
    """
    sealed, shown = channels.fresh_credentials(CHANNEL_KINDS[body["kind"]], body.pop("credentials", None))
    return accept("channels.create", {**body, "sealed_secret": sealed}, ids.new("chn"), beside=shown)


shows(blueprint, "channel", "inbox", ChannelSchema, "Show a channel.")


@accepts(blueprint, "PATCH /channels/<channel_id>", "inbox", ChannelSchema, ChannelPatch)
def update_channel(body: dict[str, Any], channel_id: str) -> Response:
    """Change the name, or the given settings. The provider is asked again if they concern it."""
    return accept("channels.update", body, channel_id)


@accepts(blueprint, "DELETE /channels/<channel_id>", "inbox", None)
def delete_channel(channel_id: str) -> Response:
    """Delete a channel: its conversations are closed, and messages that wait for it fail."""
    return act("channels.delete", channel_id)


@accepts(
    blueprint,
    "POST /channels/<channel_id>/reauthorize",
    "inbox",
    ChannelSchema,
    Reauthorization,
    secret=SECRET,
    required=False,
)
def reauthorize_channel(body: dict[str, Any], channel_id: str) -> Response:
    """Replace the credentials. Waiting messages are sent once the provider accepts the new ones.

    A web chat has none to give: it gets a new secret, which only this response shows.
    """
    workspace_id, given = caller().workspace_id, body.get("credentials")
    payload: dict[str, Any] = {}
    beside: dict[str, Any] = {}

    def check() -> None:
        kind = channels.kind_to_be(workspace_id, channel_id)
        if faults := channels.credentials_faults(kind, given):
            raise Invalid(*faults)
        payload["sealed_secret"], shown = channels.fresh_credentials(kind, given)
        beside.update(shown)

    return accept("channels.reauthorize", payload, channel_id, check, beside)
