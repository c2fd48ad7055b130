"""The kinds of channels, by name."""

from __future__ import annotations

from app.channels.base import ChannelKind
from app.channels.telegram import Telegram
from app.channels.web_chat import WebChat
from app.channels.whatsapp import WhatsApp

CHANNEL_KINDS: dict[str, ChannelKind] = {kind.name: kind for kind in (WebChat(), Telegram(), WhatsApp())}
