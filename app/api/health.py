"""Health: `/healthz` (the process is alive) and `/readyz` (it can read, write and ring bells)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import redis
import structlog
from flask import Blueprint, Response

from app import bells
from app.api.responses import respond
from app.database import DatabaseAway, rows
from app.domain.insight import readiness
from app.errors import Unavailable
from app.lib import versions

blueprint = Blueprint("health", __name__)
log = structlog.get_logger(__name__)


@blueprint.get("/healthz")
def alive() -> Response:
    """Responds with 200 and the running version while the process can respond at all."""
    return respond(200, {"status": "alive", "version": versions.running()})


@blueprint.get("/readyz")
def ready() -> Response:
    """Responds with 200 if the database and the broker answer, and writes are accepted.

    Raises Unavailable, which says why not. `answering` in the response: whether the database and the broker answer.
    """
    answering = {
        "database": _answers("database", partial(rows, "SELECT 1"), *DatabaseAway),
        "broker": _answers("broker", bells.ping, redis.RedisError, ConnectionError),
    }
    if away := [name for name, answers in answering.items() if not answers]:
        raise Unavailable(f"No response from the {' and the '.join(away)}.", answering=answering)
    if refusals := readiness.refusals():
        raise Unavailable(" ".join(refusals), answering=answering)
    return respond(200, {"status": "ready", "answering": answering})


def _answers(name: str, ask: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        ask()
    except errors as error:
        log.warning(f"ready.{name}_away", error=str(error).strip())
        return False
    return True
