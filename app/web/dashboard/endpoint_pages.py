"""Endpoints on the dashboard: how their deliveries are going, and which are not delivered yet."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from app.domain.deliveries import backlogs, sweeps
from app.domain.insight import trends
from app.domain.webhooks import endpoints
from app.lib import clock
from app.models.base import page_before
from app.models.endpoints import Endpoint
from app.models.sweeps import Sweep
from app.web import filters, periods, writes
from app.web.access import page, workspace_id
from app.web.dashboard.overviews import delivery_charts
from app.web.filters import Filter
from app.web.formats import MOST_COUNTED
from app.web.lists import MOST_EXPORTED, file_of, page_of, wanted_format
from app.web.redirects import to

blueprint = Blueprint("endpoint_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/endpoints")

STATES = ("active", "failing", "stopped")
FILTERS = {"q": Filter("Part of the address"), "state": filters.select("State", "Any state", STATES)}
NEWEST = 10  # the most deliveries, and the most sweeps, that a page shows


@blueprint.get("")
@page("dashboard.see")
def index() -> str | Response:
    """Lists the endpoints that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(FILTERS)
    found = _matching(chosen)
    if wanted_format():
        return file_of(
            lambda: [_exported(endpoint) for endpoint in page_before(found, Endpoint, [None], MOST_EXPORTED)],
            "endpoints",
        )
    listed = page_of(found, Endpoint)
    return render_template(
        "endpoints/index.html",
        page=listed,
        attempts=trends.attempts_of_endpoints(workspace_id(), [endpoint.id for endpoint in listed.rows]),
        **chosen.shown(),
        count=found.count(),  # the quota of endpoints bounds the count
    )


@blueprint.get("/<endpoint_id>")
@page("dashboard.see")
def show(endpoint_id: str) -> str:
    """Shows an endpoint: its state, how its deliveries are going, and its undelivered events."""
    endpoint = Endpoint.find(workspace_id(), endpoint_id)
    window = periods.chosen()
    attempts = trends.attempts(window, workspace_id(), endpoint.id)
    under_way = Sweep.matching(workspace_id(), {"endpoint_id": endpoint.id}).order_by(Sweep.id.desc()).limit(NEWEST)
    return render_template(
        "endpoints/show.html",
        endpoint=endpoint,
        backlog=backlogs.of(endpoint.id, MOST_COUNTED),
        undelivered=backlogs.newest(endpoint.id, NEWEST),
        sweeps=[sweeps.represent(sweep) for sweep in under_way if sweep.finished_at is None],
        now=clock.now(),
        window=window,
        windows=periods.links(),
        total=trends.total(attempts),
        charts=delivery_charts(window, attempts),
    )


@blueprint.post("/<endpoint_id>/enable")
@page("endpoints.manage")
def enable(endpoint_id: str) -> AnyResponse:
    """Enables the endpoint, and redirects to it. Releases held deliveries if the form says so."""
    endpoint = Endpoint.find(workspace_id(), endpoint_id)
    release_held = request.form.get("release_held") == "true"
    done = "The endpoint is enabled." + (" Its held deliveries are sent now." if release_held else "")
    writes.tell(done, "endpoints.enable", {"release_held": release_held}, endpoint.id)
    return to("endpoint_pages.show", endpoint_id=endpoint.id)


def _matching(chosen: filters.Filters) -> Any:
    text, state = chosen.values.get("q"), chosen.values.get("state")
    if state == "failing":
        return Endpoint.with_address(workspace_id(), text, "active").where(Endpoint.consecutive_failures > 0)
    return Endpoint.with_address(workspace_id(), text, state)


def _exported(endpoint: Endpoint) -> dict[str, Any]:
    shown = endpoints.represent(endpoint)
    return shown | {"events": " ".join(endpoint.events), "probe_at": endpoint.probe_at}
