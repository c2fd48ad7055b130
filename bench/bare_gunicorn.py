"""gunicorn's configuration of `web` for another application: the same server, without the hooks of ours."""

from typing import Any

from app.gunicorn import *  # noqa: F403


def on_starting(_server: Any) -> None:
    """Does not wait for our schema."""


def post_worker_init(_worker: Any) -> None:
    """Starts no threads of ours."""


def worker_exit(_server: Any, _worker: Any) -> None:
    """Writes nothing of ours."""
