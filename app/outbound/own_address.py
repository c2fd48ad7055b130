"""Checks that BASE_URL leads to our own `web`, the way that people and providers reach it."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from app.config import settings
from app.errors import first_line
from app.lib import json

_PATH = "/healthz"
_MOST_BYTES = 4096


class Unreachable(Exception):
    """BASE_URL does not lead to `web`. The message says why, in one line."""


def ask(timeout_seconds: float) -> None:
    """Asks `web` at BASE_URL whether it is alive. Follows no redirect. Raises Unreachable."""
    base = urlsplit(settings().base_url)
    try:
        status, where, body = _get(base, timeout_seconds)
    except (OSError, HTTPException, ValueError) as error:
        raise Unreachable(first_line(error) or type(error).__name__) from error
    if where is not None:
        raise Unreachable(f"{_PATH} is redirected to {where[:200]}: give the address that it leads to")
    if status != 200:
        raise Unreachable(f"{_PATH} is answered with {status}")
    if not _is_ours(body):
        raise Unreachable(f"{_PATH} is answered by something else than Bellhop")


def _get(base: SplitResult, timeout_seconds: float) -> tuple[int, str | None, bytes]:
    """Returns the status, the target of a redirect (None if there is none), and the body's beginning."""
    kind = HTTPSConnection if base.scheme == "https" else HTTPConnection
    connection = kind(base.hostname or "", base.port, timeout=timeout_seconds)
    try:
        connection.request("GET", base.path.rstrip("/") + _PATH)
        answer = connection.getresponse()
        where = answer.getheader("Location") if 300 <= answer.status < 400 else None
        return answer.status, where, answer.read(_MOST_BYTES)
    finally:
        connection.close()


def _is_ours(body: bytes) -> bool:
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return isinstance(said, dict) and said.get("status") == "alive"
