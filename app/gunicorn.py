"""How gunicorn serves the API: `gunicorn --config python:app.gunicorn "app:create_app()"`."""

from __future__ import annotations

import sys
from typing import Any

from app import presence
from app.config import settings
from app.errors import SettingsError
from app.unreadable import RefusingWorker

try:
    bind = f"0.0.0.0:{settings().port}"
except SettingsError as error:
    sys.exit(f"bellhop: {error.detail}")

# The number of processes is gunicorn's own WEB_CONCURRENCY.
worker_class = RefusingWorker
threads = 16
# Longer than load balancers keep an idle connection, so that they never send on one that is being closed.
keepalive = 75
graceful_timeout = 35  # the longest `Prefer: wait`, and a little
# Otherwise a header named SCRIPT_NAME that a proxy on this machine lets pass changes what a path means.
forwarder_headers = ""
accesslog = None  # the application has its own
errorlog = "-"
loglevel = "warning"


def post_worker_init(worker: Any) -> None:
    presence.announce("web")
