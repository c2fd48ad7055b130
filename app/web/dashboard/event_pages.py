"""Events: what happened, why, and which endpoints it was sent to."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Blueprint, Response, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from app.domain.deliveries import deliveries
from app.domain.people import message_access
from app.domain.work import events
from app.errors import Conflict, Invalid, NotFound
from app.lib import ids
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.web import event_bodies, writes
from app.web.access import page, workspace_id
from app.web.dashboard import endpoint_choices
from app.web.forms import errors_of
from app.web.redirects import to

blueprint = Blueprint("event_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/events")

MOST_DELIVERIES = 50


@blueprint.get("/<event_id>")
@page(message_access.SEE)
def show(event_id: str) -> str:
    """Shows an event with its deliveries; if the event has been deleted, shows only the deliveries."""
    return _page(event_id, {})


@blueprint.get("/<event_id>/body")
@page(message_access.SEE)
def show_body(event_id: str) -> Response:
    """Sends the event's body as a file. Raises NotFound if the body has been deleted."""
    event = events.find(workspace_id(), event_id)
    if event.body is None:
        raise NotFound(deliveries.BODY_GONE)
    return event_bodies.file(event.id, bytes(event.body))


@blueprint.post("/<event_id>/resend")
@page("deliveries.resend")
def resend(event_id: str) -> AnyResponse:
    """Sends the event to one endpoint as a new delivery, and redirects to the delivery.

    Shows the event again if the endpoint is invalid; redirects to the event after a Conflict.
    """
    payload = {"event_id": event_id, "endpoint_id": request.form.get("endpoint_id", "").strip()}
    try:
        job = writes.submit("deliveries.create", payload, ids.new("dlv"))
    except Invalid as invalid:
        return Response(_page(event_id, errors_of(invalid)), 422)
    except Conflict as conflict:
        return to("event_pages.show", conflict.detail, "error", event_id=event_id)
    if not job.is_finished or job.resource_id is None:
        return to("event_pages.show", event_id=event_id)
    return to("delivery_pages.show", "The event is sent again, as this new delivery.", delivery_id=job.resource_id)


def _page(event_id: str, errors: Mapping[str, str]) -> str:
    event = events.find(workspace_id(), event_id)
    sent = Delivery.of_event(workspace_id(), event.id, MOST_DELIVERIES + 1)
    wanted = request.form.get("endpoint_id", "")
    return render_template(
        "events/show.html",
        event=event,
        body=event_bodies.shown(bytes(event.body)) if event.body is not None else None,
        deliveries=sent[:MOST_DELIVERIES],
        has_more=len(sent) > MOST_DELIVERIES,
        addresses=Endpoint.addresses(workspace_id(), {delivery.endpoint_id for delivery in sent}),
        endpoints=endpoint_choices.offered("Choose an endpoint", wanted),
        wanted=wanted,
        errors=errors,
    )
