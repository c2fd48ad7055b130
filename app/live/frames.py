"""Frames: server-sent events as bytes. A frame with a place fits only the streams of one actor."""

from __future__ import annotations

from app.domain.insight.updates import StreamPosition
from app.lib import json
from app.live import places
from app.live.listeners import Pass


def event(kind: str, data: object) -> bytes:
    """Returns an event with JSON data. Put `position_of` in front of it to move the listener's place."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), json.dumps(data))


def position_of(place: StreamPosition, admitted: Pass) -> bytes:
    """Returns the first line of a frame. A listener that has received the frame resumes from `place`."""
    return f"id: {places.seal(place, admitted)}\n".encode()


def position(place: StreamPosition, admitted: Pass) -> bytes:
    """Returns a frame without an event, which moves the listener's place."""
    return position_of(place, admitted) + b"\n"


def comment(place: StreamPosition | None, admitted: Pass) -> bytes:
    """Returns a comment that keeps the stream alive, followed by `place` unless it is None."""
    return b": still here\n" + (position(place, admitted) if place else b"\n")


def reset(place: StreamPosition, admitted: Pass) -> bytes:
    """Returns a frame that tells the listener to reload everything: the updates it missed are gone."""
    return position_of(place, admitted) + event("reset", {})


def retry(after_ms: int) -> bytes:
    """Returns a frame that says how many milliseconds to wait before reconnecting."""
    return b"retry: %d\n\n" % after_ms
