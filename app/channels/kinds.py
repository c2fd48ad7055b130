"""The kinds of channels, by name."""

from __future__ import annotations

from collections.abc import Mapping

from app.channels.base import ChannelKind
from app.channels.telegram import Telegram
from app.channels.web_chat import WebChat
from app.channels.whatsapp import WhatsApp

KINDS: Mapping[str, ChannelKind] = {kind.name: kind for kind in (WebChat(), Telegram(), WhatsApp())}
