"""The kinds of channels, by name."""

from __future__ import annotations

from app.channels.base import ChannelKind

KINDS: dict[str, ChannelKind] = {}
