"""Overviews: activity over time and queues of a workspace or all, and the state of the service."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import redis
from flask import Blueprint, render_template

from app import process_registry
from app.domain.insight import failures, queues, trends
from app.domain.insight.queues import Queue, Sample
from app.domain.insight.trends import Attempts, Window
from app.lib import clock
from app.models.endpoints import Endpoint
from app.web import charts, periods
from app.web.access import page, staff, workspace_id
from app.web.charts import Chart, Series
from app.web.formats import duration, number

blueprint = Blueprint("overviews", __name__)

SAMPLED = timedelta(hours=3)  # how far back the depth of queues is shown
MOST_STOPPED = 10


@blueprint.get("/workspaces/<workspace>/dashboard")
@page("dashboard.see")
def show() -> str:
    """Shows the overview of a workspace."""
    window, id = periods.chosen(), workspace_id()
    figures = _figures(window, id)
    is_new = not figures["deliveries"].attempts and not Endpoint.in_workspace(id).exists()
    return render_template(
        "overviews/workspace.html",
        **figures,
        is_new=is_new,
        queues=[(queue, "") for queue in queues.of_workspace(id)],
        stopped=failures.stopped(id, MOST_STOPPED),
    )


@blueprint.get("/dashboard")
@staff
def show_all() -> str:
    """Shows the overview of all workspaces, and of the service."""
    return render_template(
        "overviews/all.html",
        **_figures(periods.chosen()),
        **_sampled(),
        stopped=failures.stopped(limit=MOST_STOPPED),
        service=_service(),
    )


def _figures(window: Window, id: str = "") -> dict[str, Any]:
    at = clock.now()
    attempts, writes = trends.attempts(window, id, at=at), trends.writes(window, id, at=at)
    return {
        "window": window,
        "windows": periods.links(),
        "now": at,
        "deliveries": trends.total(attempts),
        "accepted": sum(step.accepted for step in writes),
        "failed_writes": sum(step.failed for step in writes),
        "charts": [*delivery_charts(window, attempts), _write_chart(window, writes)],
    }


def delivery_charts(window: Window, attempts: Sequence[Attempts]) -> list[Chart]:
    """Returns the charts of attempts and of latency in each step of the window."""
    steps = [each.starts_at for each in attempts]
    outcomes = [
        Series("delivered", [each.delivered for each in attempts]),
        Series("failed", [each.failed for each in attempts], is_bad=True),
    ]
    latency = [
        Series("half of the answers", [each.percentile_ms(0.5) for each in attempts]),
        Series("95 %", [each.percentile_ms(0.95) for each in attempts], is_bad=True),
    ]
    return [
        charts.chart("attempts", f"Attempts per {_step(window)}", steps, outcomes, number),
        charts.chart("latency", "Time that answers take", steps, latency, duration),
    ]


def _step(window: Window) -> str:
    """Returns the length of the window's steps in words: "minute", "hour" or "6 hours"."""
    minutes = window.step // timedelta(minutes=1)
    return {1: "minute", 60: "hour"}.get(minutes, f"{minutes // 60} hours")


def _write_chart(window: Window, writes: Sequence[trends.Writes]) -> Chart:
    return charts.chart(
        "writes",
        f"Writes accepted per {_step(window)}",
        [step.starts_at for step in writes],
        [
            Series("accepted", [step.accepted for step in writes]),
            Series("of these failed", [step.failed for step in writes], is_bad=True),
        ],
        number,
    )


def _sampled() -> dict[str, Any]:
    """Returns the last sample of every queue with its recent depth, and the time of the last sample."""
    found = queues.samples(SAMPLED)
    return {
        "queues": [
            (_last(name, samples), charts.spark([sample.depth for sample in samples]))
            for name, samples in found.items()
        ],
        "sampled_at": max((samples[-1].starts_at for samples in found.values() if samples), default=None),
    }


def _last(name: str, samples: Sequence[Sample]) -> Queue:
    return Queue(name, samples[-1].depth, samples[-1].oldest_seconds) if samples else Queue(name, 0, 0.0)


def _service() -> dict[str, Any]:
    """Returns the state of the service, as its processes report it. `is_known`: Redis could be asked."""
    try:
        processes = process_registry.processes()
    except redis.RedisError:
        return {"is_known": False}
    leader = next((each for each in processes if each.type == "scheduler" and each.facts.get("leads")), None)
    passes, checks = (leader.facts.get(name, []) if leader else [] for name in ("passes", "checks"))
    made = [{**each, "made_at": each["made_at"] and datetime.fromisoformat(each["made_at"])} for each in passes]
    # A good result becomes bad if no process of its type reports any more.
    gone = {*process_registry.TYPES} - {each.type for each in processes}
    silent = {"is_good": False, "text": f"none reported in the last {process_registry.FORGOTTEN_AFTER_SECONDS} seconds"}
    return {
        "is_known": True,
        "processes": processes,
        "leader": leader,
        "passes": sorted(made, key=lambda each: each["error"] is None),
        "checks": [each | silent if each["is_good"] and each["name"] in gone else each for each in checks],
    }
