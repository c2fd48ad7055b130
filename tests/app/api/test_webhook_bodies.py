"""The bodies that the OpenAPI document describes, against what is really delivered."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import database
from app.domain.channels import channels
from app.domain.conversations import messages
from app.domain.deliveries import stops
from app.domain.webhooks import catalogue
from app.lib import clock
from app.models.conversations import Message
from app.models.endpoints import Endpoint
from tests.automations import carry_on
from tests.broadcasting import work
from tests.cast import Api, event_bodies
from tests.schemas import faults
from tests.talks import assign, change, close, locked, make_channel, make_member, receive, recent


def talk(api: Api, contact_id: str) -> None:
    """Opens, assigns, labels and closes a conversation, with messages that come to every end."""
    received = receive(api.workspace_id, contact_id, make_channel(api.workspace_id))
    for status in ("sent", "delivered", "read", "failed"):
        sent = Message(**received.__data__ | {"direction": "out", "status": status})
        locked(
            api.workspace_id,
            contact_id,
            lambda unit, contact, sent=sent: messages.tell(
                change(unit, api.workspace_id).events, contact, recent(unit, contact), sent
            ),
        )
    for assignee_id in (make_member(api.workspace_id), None):
        assign(api.workspace_id, contact_id, assignee_id)
    for labels in (["refund"], []):
        api.done(api.patch(f"conversations/{received.conversation_id}", {"labels": labels}))
    for until in ((clock.now() + timedelta(days=1)).isoformat(), None):
        api.done(api.patch(f"conversations/{received.conversation_id}", {"snoozed_until": until}))
    close(api.workspace_id, contact_id)


def broadcast(api: Api) -> None:
    """Sends a broadcast that matches no contact, so it ends at once."""
    unmatched = {"field": "contact.email", "is": "equals", "value": "unmatched@example.com"}
    body = {"name": "Sale", "filter": unmatched, "message": {"text": "Hello"}}
    work(api.done(api.post("broadcasts", body))["resource"]["id"])


def run(api: Api, contact_id: str) -> None:
    """Runs automations of which one completes, one fails and one is cancelled."""
    broken = {"id": "mark", "kind": "add_tag", "tag": "{{ contact.tags }}"}
    waiting = {"id": "pause", "kind": "wait", "seconds": 86_400}
    for step in ({"id": "end", "kind": "stop"}, broken, waiting):
        automation_id = api.published(step)
        started = api.post(f"automations/{automation_id}/start", {"contact_id": contact_id, "variables": {"n": 1}})
        api.done(started)
        carry_on(api.workspace_id)
    api.done(api.post(f"runs/{started.json['data']['resource']['id']}/cancel"))


def one_of_each(api: Api) -> list[dict[str, Any]]:
    """What was delivered of every kind."""
    stopped, _ = api.endpoint("https://old.example/"), api.endpoint("https://shop.example/")
    contact = api.contact(
        email="ada@example.com", tags=["vip"], custom_fields={"plan": "gold", "orders": 3, "ok": True}
    )
    api.done(api.patch(f"contacts/{contact['id']}", {"first_name": "Ada", "tags": []}))
    api.sale(contact["id"], reference="order-1")
    api.sale(contact["id"])
    api.done(api.post(f"bookings/{api.booking(contact['id'])['id']}/cancel"))
    talk(api, contact["id"])
    run(api, contact["id"])
    double = api.contact(external_id="double")
    api.done(api.post(f"contacts/{contact['id']}/merge", {"contact_id": double["id"]}))
    api.contact(external_id="bare")
    bare = api.get("contacts?external_id=bare").json["data"][0]["id"]
    broadcast(api)
    problem = {"code": "401", "detail": "Unauthorized"}
    channels.require_reauthorization(make_channel(api.workspace_id), problem)
    with database.transaction():
        stops._stop(Endpoint.get_by_id(stopped), "It is gone.")
    # The last of all, as it erases the others' data.
    erased = event_bodies(api.workspace_id)
    api.done(api.delete(f"contacts/{bare}"))
    return [*erased, event_bodies(api.workspace_id)[-1]]


@pytest.fixture
def schemas(client: FlaskClient) -> dict[str, Any]:
    return dict(client.get("/api/v1/openapi.json").json["components"]["schemas"])


def test_every_kind_is_delivered_as_the_document_says(
    api: Api, client: FlaskClient, schemas: dict[str, Any], subtests: pytest.Subtests
) -> None:
    webhooks = client.get("/api/v1/openapi.json").json["webhooks"]
    delivered = one_of_each(api)

    assert {body["kind"] for body in delivered} == webhooks.keys() == catalogue.EVENT_KINDS.keys()
    for body in delivered:
        with subtests.test(body["kind"]):
            schema = webhooks[body["kind"]]["post"]["requestBody"]["content"]["application/json"]["schema"]
            assert faults(body, schema, schemas) == []
            assert schemas["WebhookBody"]["discriminator"]["mapping"][body["kind"]] == schema["$ref"]


def test_what_is_left_of_an_erased_contact_is_described(api: Api, schemas: dict[str, Any]) -> None:
    contact = api.contact(email="ada@example.com", tags=["vip"])
    api.done(api.delete(f"contacts/{contact['id']}"))

    for event in api.get("events").json["data"]:
        assert faults(event["body"], schemas["ErasedBody"], schemas) == []


def test_a_sample_is_a_body_as_described(api: Api, schemas: dict[str, Any]) -> None:
    for kind in api.get("webhooks/events").json["data"]:
        reference = schemas["WebhookBody"]["discriminator"]["mapping"][kind["kind"]]
        assert faults(json.loads(json.dumps(kind["sample"])), {"$ref": reference}, schemas) == []


def test_a_fault_would_be_found(schemas: dict[str, Any]) -> None:
    body = schemas["TagAddedBody"]["example"]
    contact = body["data"]["contact"]

    for wrong in (
        body | {"kind": "tag.removed"},
        body | {"extra": 1},
        body | {"created_at": "now"},
        body | {"data": {"contact": contact}},
        body | {"data": body["data"] | {"contact": contact | {"email": 1}}},
        body | {"data": body["data"] | {"contact": contact | {"custom_fields": {"a": []}}}},
    ):
        assert len(faults(wrong, schemas["TagAddedBody"], schemas)) == 1
