"""Fetches: files of inbound messages, taken from their providers before the links end."""

from __future__ import annotations

from app.mailbox import Mail

MAIL = Mail(table="uploads", owner="channel_id", queue="fetches")
