"""The kinds of channels, by name."""

from __future__ import annotations

from collections.abc import Mapping

from app.channels.base import ChannelKind

KINDS: Mapping[str, ChannelKind] = {}
