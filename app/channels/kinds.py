"""The kinds of channels, by name."""

from __future__ import annotations

from collections.abc import Mapping

from app.channels.base import ChannelKind
from app.channels.telegram import Telegram

_ALL: tuple[ChannelKind, ...] = (Telegram(),)

KINDS: Mapping[str, ChannelKind] = {kind.name: kind for kind in _ALL}
