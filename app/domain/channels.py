"""Channels: the connections to providers, and what a kind needs to know of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.channels.base import Account, ChannelKind
from app.channels.kinds import KINDS
from app.config import settings
from app.database import rows, transaction
from app.domain import fan_out
from app.domain.events import Recorder
from app.domain.units import Unit
from app.lib import json, vault
from app.models.channels import Channel


def find(workspace_id: str, channel_id: str) -> Channel:
    """The channel. Raises NotFound, also if it was deleted."""
    return Channel.get_in(workspace_id, channel_id, "chn")


def seen_by(unit: Unit, channel_id: str) -> Channel:
    """The channel as it was when the unit first asked for it, also if it was deleted."""
    key = ("channel", channel_id)
    if key not in unit.notes:
        unit.notes[key] = Channel.get_by_id(channel_id)
    return unit.notes[key]  # type: ignore[no-any-return]


def kind_of(channel: Channel) -> ChannelKind:
    """What the channel's provider offers."""
    return KINDS[channel.kind]


def account_of(channel: Channel) -> Account:
    """The channel as its kind sees it, with its credentials in the clear.

    Raises cryptography.fernet.InvalidToken if no key decrypts them.
    """
    credentials = {} if channel.credentials is None else unsealed(bytes(channel.credentials))
    return Account(channel.id, channel.settings, credentials, _api_url(channel.kind), hook_address(channel))


def hook_address(channel: Channel) -> str:
    """Where the provider sends its webhooks."""
    return f"{settings().base_url}/hooks/{channel.kind}/{channel.id}"


def require_reauthorization(channel_id: str, problem: Mapping[str, str | None]) -> None:
    """Nothing is sent over the channel until it has new credentials. Does nothing if it is not connected."""
    with transaction():
        found = rows(
            """
            UPDATE channels SET state = 'reauthorization_required', problem = %s
            WHERE id = %s AND state = 'connected' AND deleted_at IS NULL RETURNING workspace_id
            """,
            (json.dumps(problem).decode(), channel_id),
        )
        for (workspace_id,) in found:
            recorder = Recorder(workspace_id)
            recorder.record("channel.reauthorization_required", {"channel": represent(Channel.get_by_id(channel_id))})
            fan_out.write(recorder)


def sealed(credentials: Mapping[str, str]) -> bytes:
    """Credentials, encrypted."""
    return vault.encrypt(settings().secret_keys, json.dumps(credentials).decode())


def unsealed(credentials: bytes) -> dict[str, str]:
    """Credentials in the clear."""
    found: dict[str, str] = json.loads(vault.decrypt(settings().secret_keys, credentials))
    return found


def represent(channel: Channel) -> dict[str, Any]:
    """The channel as the API shows it, without its credentials."""
    return {
        "id": channel.id,
        "kind": channel.kind,
        "name": channel.name,
        "state": channel.state,
        "problem": channel.problem,
        "settings": channel.settings,
        "hook_address": hook_address(channel),
        "created_at": channel.created_at,
    }


def _api_url(kind: str) -> str:
    urls = {"telegram": settings().telegram_api_url, "whatsapp": settings().whatsapp_api_url}
    return urls.get(kind, "")
