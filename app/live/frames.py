"""Frames: server-sent events as bytes, each made once for all streams of a member or visitor."""

from __future__ import annotations

from app.domain.insight.updates import Place
from app.lib import json
from app.live import places
from app.live.listeners import Pass


def event(kind: str, data: object) -> bytes:
    """An event. One that is behind a place follows `position_of` that."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), json.dumps(data))


def position_of(place: Place, admitted: Pass) -> bytes:
    """The first line of a frame: from this place a listener continues that has received the frame."""
    return f"id: {places.seal(place, admitted)}\n".encode()


def position(place: Place, admitted: Pass) -> bytes:
    """A frame without an event, which moves the listener's place."""
    return position_of(place, admitted) + b"\n"


def comment(place: Place | None, admitted: Pass) -> bytes:
    """A sign of life, with the place that the stream has reached."""
    return b": still here\n" + (position(place, admitted) if place else b"\n")


def reset(place: Place, admitted: Pass) -> bytes:
    """Tells the listener to read everything again: what has changed since its place is not known any more."""
    return position_of(place, admitted) + event("reset", {})


def retry(after_ms: int) -> bytes:
    """Says when to come back after the stream ends."""
    return b"retry: %d\n\n" % after_ms
