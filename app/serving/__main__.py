"""Runs gunicorn as `web`, whose arguments it takes, once the settings are right."""

from __future__ import annotations

from app.config import settings_or_exit

settings_or_exit()

# Only now: it reads WEB_CONCURRENCY when it is imported, and fails with a traceback if that is no number.
from gunicorn.app.wsgiapp import run  # noqa: E402

run(prog="gunicorn")
