"""Signs places in the stream, so that an actor can resume from one later."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from functools import cache

from app.config import settings
from app.domain.insight.updates import Forgotten, StreamPosition
from app.lib import keys
from app.live.listeners import Pass

_MAC_BYTES = 12  # enough, because each guess costs a request, and requests are limited by address


def seal(place: StreamPosition, admitted: Pass) -> str:
    """Returns the place, signed for the actor, who can resume from it on any `realtime` process."""
    return f"{place}.{_mac(_keys()[0], str(place), admitted)}"


def unseal(text: str, admitted: Pass) -> StreamPosition:
    """Returns the place that `seal` encoded for the same actor. Raises Forgotten for other texts."""
    place, _, mac = text.rpartition(".")
    if not text.isascii() or not any(hmac.compare_digest(_mac(key, place, admitted), mac) for key in _keys()):
        raise Forgotten
    return StreamPosition.parse(place)


def _mac(key: bytes, place: str, admitted: Pass) -> str:
    named = f"{admitted.workspace_id}\n{admitted.actor_id}\n{place}".encode()
    return base64.urlsafe_b64encode(hmac.digest(key, named, hashlib.sha256)[:_MAC_BYTES]).decode()


@cache
def _keys() -> Sequence[bytes]:
    return [keys.derived(key, "places") for key in settings().secret_keys]
