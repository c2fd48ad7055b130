"""`/healthz`: the process is alive. `/readyz`: its database and its broker answer. `/metrics`: what it counts."""

from __future__ import annotations

import redis
import structlog
from flask import Blueprint, Response, request

from app import bells, metrics
from app.api.responses import respond
from app.database import DatabaseAway, rows
from app.errors import NotFound, Unavailable

blueprint = Blueprint("health", __name__)
log = structlog.get_logger(__name__)


@blueprint.get("/healthz")
def alive() -> Response:
    return respond(200, {"status": "alive"})


@blueprint.get("/readyz")
def ready() -> Response:
    answering = {"database": _database_answers(), "broker": _broker_answers()}
    if away := [name for name, answers in answering.items() if not answers]:
        raise Unavailable(f"No answer from the {' and the '.join(away)}.", answering=answering)
    return respond(200, {"status": "ready", "answering": answering})


@blueprint.get("/metrics")
def show_metrics() -> Response:
    # They are the operator's. What a proxy passes on comes from outside; Prometheus asks the process itself.
    if any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "X-Real-Ip")):
        raise NotFound()
    return Response(metrics.exposition(), content_type=metrics.CONTENT_TYPE)


def _database_answers() -> bool:
    try:
        rows("SELECT 1")
    except DatabaseAway as error:
        log.warning("ready.database_away", error=str(error).strip())
        return False
    return True


def _broker_answers() -> bool:
    try:
        bells.ping()
    except (redis.RedisError, ConnectionError) as error:
        log.warning("ready.broker_away", error=str(error))
        return False
    return True
