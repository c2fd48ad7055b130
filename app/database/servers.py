"""Checks that Bellhop can use a PostgreSQL server and its database."""

from __future__ import annotations

from app.database import rows
from app.errors import SettingsError

LEAST_VERSION = 14


def check() -> None:
    """Raises SettingsError if PostgreSQL is older than LEAST_VERSION, or the database is not in UTF8."""
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
