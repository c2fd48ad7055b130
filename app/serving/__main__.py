"""Runs gunicorn as `web`, with the given arguments, after checking the settings."""

from __future__ import annotations

from app.config import settings_or_exit

settings_or_exit()

# Imported only now: gunicorn reads WEB_CONCURRENCY on import, and fails with a traceback if that is not a number.
from gunicorn.app.wsgiapp import run  # noqa: E402

run(prog="gunicorn")
