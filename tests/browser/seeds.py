"""Workspaces that pages are looked at with: a usual one and a huge one, and what they are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2

from app.config import read
from app.lib import ids, vault
from tests import histories
from tests.browser.services import Service, Workspace
from tests.definitions import nested, welcome
from tests.histories import History
from tests.journeys.shops import Caller
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer

NAMES = ("Ada Lovelace", "Grace Hopper", "Mary Jackson", "Katherine Johnson", "Annie Easley", "Radia Perlman")
LONG = (
    "Extraordinarily long names of companies with many branches, subsidiaries and departments " * 2
    + "& so on, the end…"
)
RIGHT_TO_LEFT = "متجر الزهور والهدايا في وسط المدينة القديمة"
SAID = (
    ("contact", "Good morning! Do you have tulips?", "received"),
    ("automation", "Which colour would you like?", "read"),
    ("contact", "Red", "received"),
    ("member", "We do, in red and yellow. They came in this morning and will be fresh for a week.", "read"),
    ("contact", RIGHT_TO_LEFT, "received"),
    ("member", LONG * 3, "delivered"),
    ("member", "Shall I put two bunches aside for you?", "failed"),
    ("member", "I have put two bunches aside for you.", "unknown"),
    ("contact", "Yes, please. Where can I find the invoice for the last order?", "received"),
)
STEPS = [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}, {"id": "rest", "kind": "wait", "seconds": 86_400}]


def usual(service: Service) -> Workspace:
    """A small shop with a receiver that failed for a while, an import with errors, a refused request and a sale."""
    workspace = service.open("Lovelace Flowers")
    caller = workspace.caller()
    for name in ("orders", "newsletter"):
        make_endpoint(service, workspace, name)
    service.receiver.answers[f"/{workspace.id}/newsletter"] = Answer(503, b"<h1>Service Unavailable</h1>")
    automation = make_automation(caller, "Welcome new customers", welcome())
    contacts = [make_contact(caller, name) for name in NAMES]
    caller.apply("POST", "sales", {"contact_id": contacts[0], "amount": "19.90", "currency": "EUR"})
    starts, ends = (datetime.now(UTC) + timedelta(days=days) for days in (1, 2))
    booking = {"contact_id": contacts[1], "title": "Bouquet", "starts_at": _iso(starts), "ends_at": _iso(ends)}
    caller.apply("POST", "bookings", booking)
    channel = make_web_chat(caller, "Flowers")
    caller.apply("POST", f"automations/{automation}/start", {"contact_id": contacts[2]})
    prepare_replies(caller, automation)
    for number, contact in enumerate(reversed(contacts)):
        make_conversation(service, workspace, channel, contact, len(contacts) - number)
    make_broadcast(caller)
    # Refused when it runs: the address belongs to another contact.
    caller.call("PATCH", f"contacts/{contacts[3]}", {"email": "grace.hopper@example.com"})
    import_lines(workspace, service, [f"no address {number}" for number in range(2)])
    be_refused(service, workspace)
    wait_for_failures(service, workspace, len(NAMES))
    make_invoice(service, workspace)
    return workspace


def make_broadcast(caller: Caller) -> None:
    """A segment, and a broadcast for it."""
    regulars = {"field": "contact.first_name", "is": "exists"}
    segment = caller.apply("POST", "segments", {"name": "Regulars", "filter": regulars}).data["id"]
    text = "Hello {{ contact.first_name }}, tulips are half the price until Sunday."
    body = {"name": "Tulips", "segment_id": segment, "message": {"text": text}}
    caller.apply("POST", "broadcasts", body)


def huge(service: Service) -> Workspace:
    """Tens of thousands of deliveries in 50 failed groups, 1,000 endpoints, the longest names, right-to-left text."""
    workspace = service.open(LONG[:200])
    history = History(
        *(workspace.id, 40_000, 10_000, 50, 1_000, 20_000),
        # None that making a contact would send to all of its endpoints.
        kinds=("contact.updated", "sale.recorded", "booking.created"),
        # Before the service was started, whose scheduler counts what happens since.
        ended=timedelta(hours=1),
        sealed_secret=vault.encrypt(read(service.stack.environment).secret_keys, "whsec_huge"),
    )
    with closing(psycopg2.connect(service.stack.postgres.url)) as connection, connection.cursor() as cursor:
        histories.insert(cursor, history)
        connection.commit()
    mine = "workspace_id = %s"
    service.query(f"UPDATE endpoints SET description = %s WHERE {mine} AND id LIKE '%%0'", LONG[:200], workspace.id)
    service.query(f"UPDATE endpoints SET description = %s WHERE {mine} AND id LIKE '%%1'", RIGHT_TO_LEFT, workspace.id)
    service.query(
        f"UPDATE endpoints SET address = address || %s WHERE {mine} AND id LIKE '%%9'", "/x" * 900, workspace.id
    )
    service.query(f"UPDATE contacts SET first_name = %s WHERE {mine} AND id LIKE '%%3'", LONG[:100], workspace.id)
    service.query(f"UPDATE contacts SET first_name = %s WHERE {mine} AND id LIKE '%%4'", RIGHT_TO_LEFT, workspace.id)
    service.query(
        f"UPDATE contacts SET tags = (SELECT array_agg('tag-' || n) FROM generate_series(1, 50) AS n),"
        f" custom_fields = %s WHERE {mine} AND id LIKE '%%9'",
        json.dumps({f"field_{number}": LONG[:150] for number in range(40)}),
        workspace.id,
    )
    caller = workspace.caller()
    for number in range(60):
        caller.call("POST", "automations", {"name": f"{number} {LONG}"[:200], "definition": {"steps": STEPS}})
    automation = make_automation(caller, RIGHT_TO_LEFT, nested(10, 6))
    contact = make_contact(caller, "Ada Long")
    caller.apply("POST", f"automations/{automation}/start", {"contact_id": contact})
    import_lines(workspace, service, [f"no address {number}" for number in range(60)])
    return workspace


def make_endpoint(service: Service, workspace: Workspace, name: str, description: str | None = None) -> None:
    """An endpoint for all events at the service's receiver."""
    address = service.receiver.url(f"/{workspace.id}/{name}")
    wanted = {"address": address, "events": ["*"], "description": description or name}
    workspace.caller().apply("POST", "webhooks/endpoints", wanted)


def make_web_chat(caller: Caller, name: str) -> str:
    """A web chat of that name; returns its identifier."""
    settings = {"origins": ["https://shop.example"]}
    made = caller.apply("POST", "channels", {"kind": "web_chat", "name": name, "settings": settings})
    return str(made.data["id"])


def make_conversation(
    service: Service,
    workspace: Workspace,
    channel: str,
    contact: str,
    hours_ago: int,
    said: Sequence[tuple[str, str, str]] = (),
    note: str = "Called: wants the refund in cash.",
) -> None:
    """A conversation with messages of every status, a note and labels; every third is assigned, the fourth snoozed.

    `said`: other messages, as author, text and status.
    """
    agent = service.member_id(workspace, "agent")
    talk = ids.new("cnv")
    service.query(
        "INSERT INTO conversations (id, workspace_id, contact_id, channel_id, status, unread, labels, assignee_id,"
        " snoozed_until, waiting_since, last_message_at, created_at) VALUES (%s, %s, %s, %s, 'open', %s, %s, %s,"
        " CASE WHEN %s = 4 THEN now() + interval '1 day' END, now() - %s * interval '1 h', now() - %s * interval '1 h',"
        " now() - interval '1 day')",
        *(talk, workspace.id, contact, channel, hours_ago % 3, ["refund", "vip"][: hours_ago % 3]),
        *(agent if hours_ago % 3 == 0 else None, hours_ago, hours_ago, hours_ago),
    )
    said = said or [each for each in SAID if hours_ago > 1 or len(each[1]) < 300]
    for number, (author, text, status) in enumerate(said):
        service.query(
            "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,"
            " failure, author, buttons, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, now() - %s * interval '1 h' - %s * interval '1 min')",
            *(
                ids.new("msg"),
                workspace.id,
                talk,
                contact,
                channel,
                "in" if author == "contact" else "out",
                text,
                status,
            ),
            json.dumps({"code": "blocked", "detail": "The contact has blocked the bot."})
            if status == "failed"
            else None,
            json.dumps({"type": author, "id": {"contact": contact, "member": agent}.get(author, "aut_1")}),
            json.dumps([{"id": "a", "label": "Red"}, {"id": "b", "label": "Yellow"}])
            if author == "automation"
            else None,
            *(hours_ago, len(said) - number),
        )
    workspace.caller().apply("POST", f"conversations/{talk}/notes", {"text": note})


def prepare_replies(caller: Caller, automation: str) -> None:
    """Saved replies, also of text from right to left, and a macro with an action of every kind."""
    for shortcut, text in (("hours", "We are open from nine to six."), ("directions", LONG), ("عنوان", RIGHT_TO_LEFT)):
        caller.apply("POST", "saved-replies", {"shortcut": shortcut, "text": text})
    text = "Hello {{ contact.first_name }}, your refund is on its way. It takes up to three days.\n\n{{ member.email }}"
    reply = caller.apply("POST", "saved-replies", {"shortcut": "refund", "text": text})
    actions = [
        {"kind": "reply", "saved_reply_id": str(reply.data["id"])},
        {"kind": "note", "text": "Refunded by {{ member.email }}."},
        {"kind": "assign", "assignee_id": "me"},
        {"kind": "label", "labels": ["refund", "money"]},
        {"kind": "unlabel", "labels": ["urgent"]},
        {"kind": "start_automation", "automation_id": automation},
        {"kind": "snooze", "seconds": 2 * 24 * 60 * 60},
        {"kind": "close"},
    ]
    caller.apply("POST", "macros", {"name": RIGHT_TO_LEFT, "actions": [{"kind": "close"}]})
    caller.apply("POST", "macros", {"name": "Refund", "actions": actions})


def make_automation(caller: Caller, name: str, definition: Mapping[str, Any] | None = None) -> str:
    """A published automation, by default one that adds a tag and waits; returns its identifier."""
    definition = definition or {"triggers": [], "steps": STEPS}
    made = caller.apply("POST", "automations", {"name": name, "definition": definition})
    caller.apply("POST", f"automations/{made.data['id']}/publish")
    return str(made.data["id"])


def make_contact(caller: Caller, name: str) -> str:
    """A contact with an e-mail address of that name; returns its identifier."""
    first, _, last = name.partition(" ")
    email = f"{first}.{last}@example.com".lower()
    made = caller.apply("POST", "contacts", {"email": email, "first_name": first, "last_name": last, "tags": ["vip"]})
    return str(made.data["id"])


def import_lines(workspace: Workspace, service: Service, bad_lines: Sequence[str]) -> None:
    """An import of five good lines and these, which has ended."""
    lines = [f'{{"email": "import.{number}@example.com"}}' for number in range(5)] + [*bad_lines]
    answer = workspace.caller().call(
        "POST", "contacts/import", "\n".join(lines).encode(), {"Content-Type": "application/x-ndjson"}
    )
    assert answer.status == 202, answer
    job = answer.data["id"]
    wait_until(
        lambda: service.query("SELECT status FROM jobs WHERE id = %s", job) in ([("succeeded",)], [("failed",)]),
        60,
        "the import has ended",
    )


def make_invoice(service: Service, workspace: Workspace) -> None:
    """An invoice of a month that is over."""
    [(number,)] = service.query("SELECT coalesce(max(number), 0) + 1 FROM invoices")
    line = {"description": "Starter plan", "meter": None, "used": None, "included": None, "quantity": 1}
    line |= {"unit_price": "12.30", "amount": "12.30"}
    service.query(
        "INSERT INTO invoices (id, workspace_id, number, plan, currency, period_start, period_end, lines, total)"
        " VALUES (%s, %s, %s, 'starter', 'EUR', '2026-10-01', '2026-11-01', %s, 12.30)",
        ids.new("inv"),
        workspace.id,
        number,
        json.dumps([line]),
    )


def be_refused(service: Service, workspace: Workspace) -> None:
    """A request that the API has refused for two of its fields, and noted."""
    answer = workspace.caller().call("POST", "contacts", {"email": "ada", "phone": "1"})
    assert answer.status == 422, answer
    noted = "SELECT 1 FROM refused_requests WHERE workspace_id = %s"
    wait_until(lambda: service.query(noted, workspace.id), 60, "the refused request is noted")


def wait_for_failures(service: Service, workspace: Workspace, number: int) -> None:
    """Returns once that many deliveries have failed."""
    count = "SELECT count(*) FROM deliveries WHERE workspace_id = %s AND status = 'failed'"
    wait_until(lambda: service.query(count, workspace.id)[0][0] >= number, 60, "deliveries have failed")


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
