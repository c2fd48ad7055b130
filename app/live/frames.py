"""Frames: server-sent events as bytes, each made once however many listeners get it."""

from __future__ import annotations

from app.domain.updates import Place
from app.lib import json


def event(kind: str, data: object) -> bytes:
    """An event. One that is behind a place follows `position_of` that."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), json.dumps(data))


def position_of(place: Place) -> bytes:
    """The first line of a frame: from this place a listener goes on that has received the frame."""
    return f"id: {place}\n".encode()


def position(place: Place) -> bytes:
    """A frame without an event, which moves the listener's place."""
    return position_of(place) + b"\n"


def comment(place: Place | None) -> bytes:
    """A sign of life, with the place that the stream has reached."""
    return b": still here\n" + (position(place) if place else b"\n")


def reset(place: Place) -> bytes:
    """Tells the listener to read everything again: what has changed since its place is not known any more."""
    return position_of(place) + event("reset", {})


def beginning(retry_ms: int) -> bytes:
    """The first bytes of a stream: when to come back after it ends."""
    return b"retry: %d\n\n" % retry_ms
