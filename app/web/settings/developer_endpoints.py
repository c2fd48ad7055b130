"""The settings of endpoints: pages that create, change, test, enable and delete them."""

from __future__ import annotations

import json
from functools import partial
from itertools import groupby
from typing import Any

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.bodies.endpoints import EnableBody, EndpointCreate, EndpointPatch, EndpointTest
from app.domain.webhooks import catalogue, endpoints
from app.errors import Conflict, Invalid
from app.lib import clock, ids
from app.models.endpoints import Endpoint
from app.web import writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, checked, errors_of, status_of, typed, typed_all, whole
from app.web.redirects import to

blueprint = Blueprint(
    "developer_endpoints", __name__, url_prefix="/workspaces/<workspace>/settings/developers/endpoints"
)


@blueprint.get("")
@page("endpoints.see")
def index() -> Response:
    """Redirects from the former address of the list to its present one."""
    return to("endpoint_pages.index")


@blueprint.get("/new")
@page("endpoints.manage")
def new() -> str:
    """Shows the form of a new endpoint."""
    return _form({"events": []})


@blueprint.post("/new")
@page("endpoints.manage")
def create() -> Answer:
    """Creates the endpoint and shows its secret, only this once. If refused, shows the form again."""
    given = _given()
    try:
        fields = checked(EndpointCreate(), _body(given))
        secret = endpoints.new_secret()
        payload = {**fields, "sealed_secret": endpoints.seal(secret)}
        job, was_there = writes.submit_once("endpoints.create", payload, ids.new("whe"))
    except (Invalid, Conflict) as error:
        return _form(given, errors_of(error)), status_of(error)
    return _secret(str(job.resource_id), fields["address"], None if was_there else secret)


@blueprint.get("/<endpoint_id>")
@page("endpoints.see")
def show(endpoint_id: str) -> str:
    """Shows an endpoint: its settings, its state, and the forms that act on it."""
    endpoint = Endpoint.find(workspace_id(), endpoint_id)
    until = endpoint.previous_secret_until
    return render_template(
        "developer_endpoints/show.html",
        endpoint=endpoint,
        kinds=[(kind, kind) for kind in catalogue.EVENT_KINDS],
        both_until=until if until and until > clock.now() else None,
    )


@blueprint.get("/<endpoint_id>/edit")
@page("endpoints.manage")
def edit(endpoint_id: str) -> str:
    """Shows the form that changes the endpoint."""
    endpoint = Endpoint.find(workspace_id(), endpoint_id)
    return _form(endpoints.represent(endpoint), endpoint_id=endpoint.id)


@blueprint.post("/<endpoint_id>/edit")
@page("endpoints.manage")
def update(endpoint_id: str) -> Answer:
    """Changes the endpoint, and redirects to it. If refused, shows the form again."""
    endpoint = Endpoint.find(workspace_id(), endpoint_id)
    given = _given()
    try:
        job = writes.submit("endpoints.update", checked(EndpointPatch(), _body(given)), endpoint.id)
    except (Invalid, Conflict) as error:
        return _form(given, errors_of(error), endpoint.id), status_of(error)
    done = "The endpoint was changed." if job.is_finished else None
    return to("developer_endpoints.show", done, endpoint_id=endpoint.id)


@blueprint.post("/<endpoint_id>/rotate-secret")
@page("endpoints.manage")
def rotate(endpoint_id: str) -> Answer:
    """Rotates the secret and shows it, only this once. After a Conflict, redirects to the endpoint."""
    endpoint, secret = Endpoint.find(workspace_id(), endpoint_id), endpoints.new_secret()
    payload = {"sealed_secret": endpoints.seal(secret)}
    try:
        _, was_there = writes.submit_once("endpoints.rotate_secret", payload, endpoint.id)
    except Conflict as error:
        return _refused(endpoint.id, error)
    return _secret(endpoint.id, endpoint.address, None if was_there else secret, is_rotated=True)


@blueprint.post("/<endpoint_id>/test")
@page("endpoints.manage")
def test(endpoint_id: str) -> Answer:
    """Sends a sample to the endpoint, and redirects to the sample's delivery.

    If the test is refused or the write is delayed, redirects to the endpoint.
    """
    endpoint = Endpoint.find(workspace_id(), endpoint_id)
    try:
        fields = checked(EndpointTest(), typed("kind"))
        job = writes.submit("endpoints.test", {**fields, "endpoint_id": endpoint.id})
    except (Conflict, Invalid) as error:
        return _refused(endpoint.id, error)
    if not job.is_finished:
        return to("developer_endpoints.show", endpoint_id=endpoint.id)
    return to("delivery_pages.show", "The sample is on its way. This is its delivery.", delivery_id=job.resource_id)


@blueprint.post("/<endpoint_id>/enable")
@page("endpoints.manage")
def enable(endpoint_id: str) -> Answer:
    """Enables the endpoint, and redirects to it. Releases held deliveries if the form says so."""
    endpoint, is_released = Endpoint.find(workspace_id(), endpoint_id), request.form.get("release_held") == "true"
    done = "The endpoint is active." + (" Held deliveries go out, oldest first." if is_released else "")
    writes.tell(done, "endpoints.enable", checked(EnableBody(), {"release_held": is_released}), endpoint.id)
    return to("developer_endpoints.show", endpoint_id=endpoint.id)


@blueprint.post("/<endpoint_id>/delete")
@page("endpoints.manage")
def delete(endpoint_id: str) -> Answer:
    """Deletes the endpoint, and redirects to the list; to the endpoint after a Conflict."""
    exists = partial(Endpoint.find, workspace_id(), endpoint_id)
    done = "The endpoint was deleted. Its unfinished deliveries are cancelled."
    if not writes.tell(done, "endpoints.delete", {}, endpoint_id, exists):
        return to("developer_endpoints.show", endpoint_id=endpoint_id)
    return to("endpoint_pages.index")


def _given() -> dict[str, Any]:
    given: dict[str, Any] = typed("address", "description", "max_per_second")
    chosen, groups = typed_all("events"), typed_all("group")
    grouped = [kind for kind in catalogue.EVENT_KINDS if _group(kind) in groups and kind not in chosen]
    return given | {"events": [*chosen, *grouped], "ordered": request.form.get("ordered") == "true"}


def _group(kind: str) -> str:
    return kind.partition(".")[0]


def _body(given: dict[str, Any]) -> dict[str, Any]:
    limit = whole(given["max_per_second"])
    return {
        "address": given["address"].strip(),
        "events": ["*"] if "*" in given["events"] else given["events"],
        "description": given["description"].strip() or None,
        "max_per_second": None if limit == "" else limit,
        "ordered": given["ordered"],
    }


def _form(given: dict[str, Any], errors: dict[str, str] | None = None, endpoint_id: str | None = None) -> str:
    kinds = [
        (each["kind"], each["description"], json.dumps(each["sample"], indent=2, ensure_ascii=False))
        for each in catalogue.represent(workspace_id())
    ]
    return render_template(
        "developer_endpoints/form.html",
        given=given,
        errors=errors or {},
        groups=[(name, list(kinds_of)) for name, kinds_of in groupby(kinds, lambda each: _group(each[0]))],
        endpoint_id=endpoint_id,
    )


def _secret(endpoint_id: str, address: str, secret: str | None, is_rotated: bool = False) -> str:
    return render_template(
        "developer_endpoints/secret.html",
        endpoint_id=endpoint_id,
        address=address,
        secret=secret,
        is_rotated=is_rotated,
    )


def _refused(endpoint_id: str, error: Conflict | Invalid) -> Response:
    return to("developer_endpoints.show", error.detail[:500], "error", endpoint_id=endpoint_id)
