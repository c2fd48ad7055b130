"""Visitors of web chats."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who writes in a web chat. `id` is the external id of its identity, `peer` where answers to it go."""

    workspace_id: str
    channel_id: str
    id: str
    contact_id: str | None
    peer: str
    user_id: str | None


def authenticate(token: str) -> Visitor | None:
    """The visitor with that token; None if there is none."""
    del token
    return None


def is_allowed(origins: list[str], origin: str | None) -> bool:
    """Whether pages of that origin may show a chat whose channel allows these origins."""
    return origin in origins
