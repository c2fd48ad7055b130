"""The export of a contact: everything that is stored about it, as one JSON document."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from app.database import rows
from app.domain.contacts import contacts
from app.domain.deliveries import attempts, lanes
from app.domain.deliveries.attempts import Outcome
from app.domain.lifecycle import exports
from app.lib import clock
from app.outbound import answered
from tests.automations import carry_on, make_automation
from tests.cast import Api, event_bodies, one
from tests.talks import make_channel, receive


def export(api: Api, contact_id: str) -> dict[str, Any]:
    answer = api.get(f"contacts/{contact_id}/export")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    return dict(json.loads(answer.data)["data"])


def test_an_export_has_the_contact_and_what_happened_to_it(api: Api) -> None:
    made = api.contact(email="ada@example.com", tags=["vip"])
    api.contact(email="eve@example.com")

    exported = export(api, made["id"])

    assert exported["contact"] == made
    told = {name: value for name, value in made.items() if name not in ("identities", "suggested_merges")}
    assert exported["events"] == [body for body in event_bodies(api.workspace_id) if body["data"]["contact"] == told]
    assert len(exported["events"]) == 2
    assert exported.keys() == {"contact", *exports.SOURCES}


def test_an_export_has_the_deliveries_with_their_attempts_and_who_resent_them(api: Api) -> None:
    endpoint_id = api.endpoint(events=["contact.created"])
    contact_id = api.contact(email="ada@example.com")["id"]
    [dispatch] = attempts.claim(lanes.FAST, {endpoint_id: 10})
    attempts.record([Outcome(dispatch, clock.now(), answered(200, b"welcome", 5))])
    resent = api.done(api.post(f"webhooks/deliveries/{dispatch.claimed.id}/resend"))

    exported = export(api, contact_id)

    assert [each["id"] for each in exported["deliveries"]] == [dispatch.claimed.id, resent["resource"]["id"]]
    [attempt] = exported["deliveries"][0]["attempts_log"]
    assert (attempt["number"], attempt["response_body"]) == (1, "welcome")
    assert [entry["action"] for entry in exported["audit_log"]] == ["deliveries.resend"]


def test_an_export_has_the_sales_and_bookings_of_the_contact_alone(api: Api) -> None:
    contact_id, other = api.contact(email="ada@example.com")["id"], api.contact(email="eve@example.com")["id"]
    sales = [api.sale(contact_id, reference="one"), api.sale(contact_id)]
    booking = api.booking(contact_id)
    api.sale(other)
    api.booking(other)

    exported = export(api, contact_id)

    assert (exported["sales"], exported["bookings"]) == (sales, [booking])


def test_an_export_has_the_runs_with_their_logs_and_what_was_written(api: Api) -> None:
    contact_id, other_id = api.contact(external_id="ada")["id"], api.contact(external_id="eve")["id"]
    steps = [{"id": "tag", "kind": "add_tag", "tag": "vip"}]
    automation_id = make_automation(api.workspace_id, {"steps": steps, "triggers": [{"event": "contact.updated"}]})
    for each in (contact_id, other_id):
        api.done(api.patch(f"contacts/{each}", {"first_name": "Ada"}))
    carry_on(api.workspace_id)
    message = receive(api.workspace_id, contact_id, make_channel(api.workspace_id), "Please call me")

    exported = export(api, contact_id)

    [run] = exported["runs"]
    assert (run["automation_id"], run["status"]) == (automation_id, "completed")
    assert run["event"]["data"]["contact"]["first_name"] == "Ada"
    assert [(step["id"], step["status"]) for step in run["steps"]] == [("tag", "succeeded")]
    assert [conversation["id"] for conversation in exported["conversations"]] == [message.conversation_id]
    assert [(each["id"], each["text"]) for each in exported["messages"]] == [(message.id, "Please call me")]


def test_an_export_has_what_jobs_about_the_contact_still_keep(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    contact_id = api.contact(email="ada@example.com")["id"]
    with monkeypatch.context() as broken:
        broken.setattr(contacts, "_alter", None)
        api.done(api.post("contacts", {"email": "ADA@example.com", "first_name": "Ada"}))
    api.patch(f"contacts/{contact_id}", {"last_name": "Lovelace"})

    kept = export(api, contact_id)["jobs"]

    assert [(job["status"], job["payload"]) for job in kept] == [
        ("failed", {"email": "ADA@example.com", "first_name": "Ada"}),
        ("queued", {"last_name": "Lovelace"}),
    ]


def test_an_export_is_an_attachment(api: Api) -> None:
    contact_id = api.contact(email="ada@example.com")["id"]

    answer = api.get(f"contacts/{contact_id}/export")

    assert answer.headers["Content-Disposition"] == f'attachment; filename="{contact_id}.json"'
    assert answer.headers["X-Request-Id"]


def test_the_head_of_an_export_has_no_body(api: Api) -> None:
    contact_id = api.contact(email="ada@example.com")["id"]

    answer = api.ask("HEAD", f"contacts/{contact_id}/export")

    assert (answer.status_code, answer.data, answer.mimetype) == (200, b"", "application/json")


def test_a_contact_with_very_many_events_does_not_take_the_memory(api: Api) -> None:
    made = api.contact(email="ada@example.com", custom_fields={"note": "x" * 4000})
    rows(
        """
        INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)
        SELECT 'evt_000000000000000000000' || lpad(number::text, 5, '0'), workspace_id, kind, contact_id, '', body,
            now()
        FROM events CROSS JOIN generate_series(1, 20000) AS number
        """
    )
    contact = contacts.find(api.workspace_id, made["id"])
    stored = one("SELECT sum(length(body)) FROM events")

    tracemalloc.start()
    size = sum(len(piece) for piece in exports.export(contact))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size > stored > 80_000_000
    assert most < stored / 4
