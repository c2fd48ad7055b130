"""The cookie that holds a session's token: how it is named, signed and read."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from flask import Flask
from flask.sessions import SecureCookieSessionInterface
from itsdangerous import BadSignature
from werkzeug.http import parse_cookie

from app.config import settings
from app.lib import keys

LIFE = timedelta(days=30)


def configuration() -> dict[str, Any]:
    """Returns Flask's settings for the cookie. Cookies signed with older keys are still accepted."""
    is_https = settings().base_url.startswith("https://")
    newest, *older = (keys.derived(key, "sessions") for key in settings().secret_keys)
    return {
        "SECRET_KEY": newest,
        "SECRET_KEY_FALLBACKS": older,
        # A browser accepts `__Host-` only from this host and over TLS, so no other host can plant a cookie.
        "SESSION_COOKIE_NAME": "__Host-bellhop" if is_https else "bellhop",
        "SESSION_COOKIE_SECURE": is_https,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "PERMANENT_SESSION_LIFETIME": LIFE,
    }


@cache
def of_settings() -> Cookies:
    """Returns the reader for the current settings, which is made only once."""
    return Cookies()


class Cookies:
    """Reads the tokens of sessions outside the pages."""

    def __init__(self) -> None:
        reader = Flask(__name__, static_folder=None)
        reader.config.update(configuration())
        self._name = reader.config["SESSION_COOKIE_NAME"]
        self._serializer = SecureCookieSessionInterface().get_signing_serializer(reader)

    def token(self, header: str) -> str | None:
        """Returns the session's token in a Cookie header; None if it is missing or not signed by us."""
        sent = parse_cookie(header).get(self._name)
        if not sent or self._serializer is None:
            return None
        try:
            found = self._serializer.loads(sent, max_age=int(LIFE.total_seconds()))
        except BadSignature:
            return None
        token = found.get("_user_id") if isinstance(found, dict) else None
        return token if isinstance(token, str) else None
