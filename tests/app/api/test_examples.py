"""Responses of the real server, and the examples of the OpenAPI document, are as the document's schemas say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import database
from app.api.lists import PageQuery
from app.problems import problem_document
from tests import billing, people, surface
from tests.automations import carry_on
from tests.broadcasting import work
from tests.cast import Api, replay, working
from tests.schemas import faults
from tests.surface import Operation
from tests.talks import add_note, make_macro, make_saved_reply, receive

VALID = {
    "external_id": "customer-1042",
    "address": "https://shop.example/hooks",
    "events": ["*"],
    "ends_at": "2026-01-01T01:00:00Z",
    "definition": {"steps": [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}]},
}
Responses = dict[str, dict[str, Any]]


def test_every_response_and_its_example_are_as_the_document_says(
    api: Api, app: Flask, client: FlaskClient, subtests: pytest.Subtests
) -> None:
    document = client.get("/api/v1/openapi.json").json
    schemas, described = document["components"]["schemas"], by_name(document)
    found = record(api, [each for each in surface.operations(app) if "/<workspace>/" in each.rule], document)

    for name, responses in found.items():
        for status, body in responses.items():
            with subtests.test(f"{name} {status}"):
                content = described[name]["responses"][status]["content"]["application/json"]
                assert faults(body, content["schema"], schemas) == []
                assert faults(content["example"], content["schema"], schemas) == []


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: operation
        for item in document["paths"].values()
        for method, operation in item.items()
        if method != "parameters"
    }


def record(api: Api, operations: list[Operation], document: dict[str, Any]) -> Responses:
    """The successful responses to all operations, by operation and status."""
    known = furnish(api, {noun for operation in operations for noun in operation.nouns})
    found: Responses = {}
    for operation in operations:
        if operation.collection == "/contacts/import":
            continue
        path = operation.path(api.workspace_id, known)
        item = document["paths"][re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", operation.rule)]
        responses = found.setdefault(item[operation.method.lower()]["operationId"], {})
        for status, body in successes(api, operation, path, known):
            responses[str(status)] = body
    return found


def successes(api: Api, operation: Operation, path: str, known: dict[str, str]) -> list[tuple[int, Any]]:
    if operation.method == "GET":
        shown = [api.get(f"{path}?limit=1" if isinstance(operation.query, PageQuery) else path)]
    else:
        body = {"body": surface.sample(operation.body, known)} if operation.body else {}
        for sent in body.values():
            sent |= {name: value for name, value in VALID.items() if name in sent}
        body |= {"data": b"%PDF-1.7"} if operation.collection == "/uploads" else {}
        if operation.collection.startswith("/broadcasts/<"):
            prepare_broadcast(known["broadcast"], operation)
        if operation.rule.endswith("/move-runs"):
            api.done(api.post(f"automations/{known['automation']}/publish"))
        again = operation.collection == "/messages/<message_id>/resend"
        if again:
            fail_message(known["message"])
        shown = [api.ask(operation.method, path, **body)]
        api.apply()
        if again:
            fail_message(known["message"])
        with working():
            shown.append(api.ask(operation.method, path, **body, wait=20))
    return [(each.status_code, each.json) for each in shown if each.status_code < 300 and each.data]


def fail_message(message_id: str) -> None:
    """So that the message can be sent again."""
    database.rows("UPDATE messages SET status = 'failed' WHERE id = %s", (message_id,))


def prepare_broadcast(broadcast_id: str, operation: Operation) -> None:
    """So that the broadcast can be changed, or moved on."""
    state = {"pause": "running", "continue": "paused", "abort": "running"}.get(operation.rule.rpartition("/")[2])
    database.rows(
        "UPDATE broadcasts SET state = %s, finished_at = NULL WHERE id = %s RETURNING id",
        (state or "scheduled", broadcast_id),
    )


def furnish_broadcast(api: Api) -> dict[str, str]:
    """A broadcast whose canary has been sent."""
    message = {"text": "Hello {{ contact.first_name }}, everything is half the price until Sunday."}
    vip = {"field": "contact.tags", "is": "contains", "value": "vip"}
    body = {"name": "Autumn sale", "filter": vip, "message": message, "canary": True}
    broadcast_id = api.done(api.post("broadcasts", body))["resource"]["id"]
    work(broadcast_id)
    return {"broadcast": broadcast_id}


def furnish_inbox(api: Api, contact_id: str) -> dict[str, str]:
    """A web chat with a conversation that somebody looks at, an answer and a note in it, and a member."""
    web_chat = {"kind": "web_chat", "name": "Shop", "settings": {"origins": ["https://shop.example"]}}
    channel_id = api.done(api.post("channels", web_chat))["resource"]["id"]
    conversation_id = receive(api.workspace_id, contact_id, channel_id, "Where is my order?").conversation_id
    sent = api.post(f"conversations/{conversation_id}/messages", {"text": "It is on its way."})
    known = {"channel": channel_id, "conversation": conversation_id, "message": api.done(sent)["resource"]["id"]}
    api.post(f"conversations/{conversation_id}/presence")
    known["note"] = add_note(api, conversation_id, "Called; wants the refund in cash.")
    known |= {"saved_reply": make_saved_reply(api, "thanks"), "macro": make_macro(api)}
    return known | {"member": people.make_member(api.workspace_id, "grace@shop.example", "agent")[1].id}


def furnish_automation(api: Api, contact_id: str) -> dict[str, str]:
    """A published automation, and a run of it that waits."""
    steps = {"id": "mark", "kind": "add_tag", "tag": "welcomed"}, {"id": "pause", "kind": "wait", "seconds": 86_400}
    automation_id = api.published(*steps)
    run_id = api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))["resource"]["id"]
    carry_on(api.workspace_id)
    return {"automation": automation_id, "run": run_id}


def furnish_failures(api: Api) -> dict[str, str]:
    """A job that failed by a fault of ours, and a replay whose canary has been sent."""
    job_id = api.done(api.post("contacts", {"email": "grace@example.com"}))["id"]
    problem = problem_document("internal-error", None, "trace-1", base_url="https://bellhop.test")
    database.rows(
        """UPDATE jobs SET status = 'failed', payload = '{"email": "grace@example.com"}', problem = %s WHERE id = %s""",
        (json.dumps(problem), job_id),
    )
    database.rows("UPDATE deliveries SET status = 'failed', due_at = NULL")
    begun = api.done(api.post("webhooks/replays", {"filter": {"statuses": ["failed"]}, "canary": True}))
    replay(begun["resource"]["id"])
    database.rows("UPDATE deliveries SET status = 'pending', due_at = now()")
    return {"job": job_id, "replay": begun["resource"]["id"]}


def furnish(api: Api, nouns: set[str]) -> dict[str, str]:
    """One of everything, with real data."""
    billing.close_february(api.workspace_id)
    address = {"email": "ada@example.com", "first_name": "Ada", "tags": ["vip"], "custom_fields": {"plan": "gold"}}
    endpoint = api.endpoint(VALID["address"])  # type: ignore[arg-type]
    contact = api.contact(external_id="customer-1042", phone="+4930123456", **address)["id"]
    known = {"endpoint": endpoint, "contact": contact}
    known |= {"sale": api.sale(contact)["id"], "booking": api.booking(contact)["id"]}
    sent = api.post("contacts/import", data=b'{"email": "x"}\n{}', content_type="application/jsonl")
    known |= furnish_automation(api, contact) | furnish_inbox(api, contact)
    known["import"] = api.done(sent)["resource"]["id"]
    known["sweep"] = api.done(api.post(f"webhooks/endpoints/{endpoint}/resend"))["resource"]["id"]
    known |= furnish_failures(api)
    vip = {"name": "VIPs", "filter": {"field": "contact.tags", "is": "contains", "value": "vip"}}
    known["segment"] = api.done(api.post("segments", vip))["resource"]["id"]
    known |= furnish_broadcast(api)
    known["invoice"] = api.get("invoices").json["data"][0]["id"]
    known["event"] = api.get("events").json["data"][0]["id"]
    delivery = known["delivery"] = api.get("webhooks/deliveries").json["data"][0]["id"]
    database.rows(
        "INSERT INTO attempts (delivery_id, number, at, duration_ms, status, response_body)"
        " VALUES (%s, 1, now(), 42, 200, 'ok')",
        (delivery,),
    )
    database.rows(
        "UPDATE deliveries SET status = 'delivered', attempts = 1, delivered_at = now(), due_at = NULL WHERE id = %s",
        (delivery,),
    )
    assert nouns <= known.keys()
    return known
