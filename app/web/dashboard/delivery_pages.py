"""The delivery log: the list of deliveries, each with its attempts and its request."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from flask import Blueprint, Response, flash, render_template
from werkzeug.wrappers import Response as AnyResponse

from app.domain.deliveries import causes, deliveries, explanations, reproductions
from app.domain.people import message_access
from app.domain.webhooks import catalogue
from app.errors import Conflict, NotFound
from app.models.base import page_before
from app.models.deliveries import STATUSES, Attempt, Delivery
from app.models.endpoints import Endpoint
from app.models.events import Event
from app.outbound.answers import ERROR_CODES
from app.web import event_bodies, filters, periods, writes
from app.web.access import page, workspace_id
from app.web.dashboard import endpoint_choices
from app.web.filters import Filter
from app.web.formats import MOST_COUNTED
from app.web.lists import MOST_EXPORTED, file_of, page_of, wanted_format
from app.web.redirects import to

blueprint = Blueprint("delivery_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/deliveries")

FILTERS = {
    "endpoint_id": Filter("Endpoint", filters.identifier("whe")),
    "status": filters.select("State", "Any state", STATUSES),
    "kind": filters.select("Kind", "All kinds", catalogue.EVENT_KINDS),
    "error_code": filters.select("Cause", "Any cause", ERROR_CODES),
    "status_code": Filter("Status received", filters.status_code),
    **periods.FILTERS,
}
MOST_ATTEMPTS = 50  # the most attempts that a page shows
LONGEST_ANSWER = 2_000  # the most characters of a receiver's answer that a page shows


@blueprint.get("")
@page("dashboard.see")
def index() -> str | Response:
    """Lists the deliveries that match the filters, newest first, as a page or as a file."""
    chosen = filters.read(FILTERS)
    found = Delivery.matching(workspace_id(), chosen.values)
    if wanted_format():
        return file_of(lambda: _exported(list(page_before(found, Delivery, [None], MOST_EXPORTED))), "deliveries")
    listed = page_of(found, Delivery)
    return render_template(
        "deliveries/index.html",
        page=listed,
        **chosen.shown(endpoint_id=endpoint_choices.offered("All endpoints", chosen.given.get("endpoint_id"))),
        count=Delivery.counted(workspace_id(), chosen.values, MOST_COUNTED),
        addresses=Endpoint.addresses(workspace_id(), {delivery.endpoint_id for delivery in listed.rows}),
        presets=periods.presets(),
        next_attempt=lambda delivery: deliveries.represent(delivery)["next_attempt_at"],
    )


@blueprint.get("/<delivery_id>")
@page(message_access.SEE)
def show(delivery_id: str) -> str:
    """Shows a delivery: its state and next step, its request, and its newest attempts."""
    delivery = Delivery.find(workspace_id(), delivery_id)
    endpoint = Endpoint.get_or_none(Endpoint.id == delivery.endpoint_id)
    event = Event.get_or_none(Event.id == delivery.event_id)
    attempts = Attempt.latest(delivery.id, MOST_ATTEMPTS + 1)
    body = bytes(event.body) if event else None
    request = (delivery.id, endpoint.address, body) if endpoint and body is not None else None
    return render_template(
        "deliveries/show.html",
        delivery=delivery,
        endpoint=endpoint,
        event=event,
        explanation=explanations.of(delivery, endpoint),
        cause=causes.explain(delivery.last_error_code, delivery.last_status) if delivery.last_error_code else None,
        attempts=_alike(attempts[:MOST_ATTEMPTS]),
        has_more_attempts=len(attempts) > MOST_ATTEMPTS,
        explain=causes.explain,
        longest_answer=LONGEST_ANSWER,
        body=event_bodies.shown(body) if body is not None else None,
        head=reproductions.head(*request) if request else None,
        command=reproductions.command(*request) if request else None,
        meanings=reproductions.MEANINGS,
    )


@blueprint.get("/<delivery_id>/body")
@page(message_access.SEE)
def show_body(delivery_id: str) -> Response:
    """Sends the body of the delivery's requests as a file. Raises NotFound if the event is deleted."""
    delivery = Delivery.find(workspace_id(), delivery_id)
    event = Event.get_or_none(Event.id == delivery.event_id)
    if event is None:
        raise NotFound(deliveries.BODY_GONE)
    return event_bodies.file(event.id, bytes(event.body))


@blueprint.post("/<delivery_id>/resend")
@page("deliveries.resend")
def resend(delivery_id: str) -> AnyResponse:
    """Resends the delivery, and redirects to the delivery that was sent.

    After a Conflict, or if the write is delayed, redirects to this delivery.
    """
    delivery = Delivery.find(workspace_id(), delivery_id)
    sent_as = delivery.id
    try:
        job = writes.submit("deliveries.resend", {"delivery_id": delivery.id})
    except Conflict as conflict:
        flash(conflict.detail, "error")
    else:
        if job.is_finished:
            sent_as = job.resource_id or sent_as
            flash("It is sent again." if sent_as == delivery.id else "It is sent again, as this new delivery.", "good")
    return to("delivery_pages.show", delivery_id=sent_as)


def _alike(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Groups consecutive attempts with the same outcome."""
    return [
        list(group)
        for _, group in groupby(attempts, lambda each: (each.error_code, each.status, each.error, each.trigger))
    ]


def _exported(found: Sequence[Delivery]) -> list[dict[str, Any]]:
    addresses = Endpoint.addresses(workspace_id(), {delivery.endpoint_id for delivery in found})
    return [
        deliveries.represent(delivery)
        | {"endpoint_address": addresses.get(delivery.endpoint_id), "last_status": delivery.last_status}
        for delivery in found
    ]
