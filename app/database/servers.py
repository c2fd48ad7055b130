"""Whether a server and its database are ones that Bellhop can use."""

from __future__ import annotations

from app.database import rows
from app.errors import SettingsError

LEAST_VERSION = 14


def check() -> None:
    """Raises SettingsError where PostgreSQL is too old, or the database stores anything but Unicode."""
    [(number, version, encoding)] = rows(
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),"
        " current_setting('server_encoding')"
    )
    if number < LEAST_VERSION * 10_000:
        raise SettingsError(f"PostgreSQL is version {version}: Bellhop needs {LEAST_VERSION} or later")
    if encoding != "UTF8":
        raise SettingsError(
            f"the encoding of the database is {encoding}: make another one with"
            " CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
