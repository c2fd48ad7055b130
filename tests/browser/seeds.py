"""Workspaces that pages are looked at with: an empty one, a usual one, a huge one, and one full of hostile text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import psycopg2

from app.config import read
from app.lib import ids, vault
from tests import histories
from tests.browser.services import Service, Workspace
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
STEPS = [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}, {"id": "rest", "kind": "wait", "seconds": 86_400}]
# Runs if it ever gets into a page as markup, an attribute or a script; `ran` counts.
HOSTILE = (
    "\"'></script></style></textarea></title><script>ran()</script><img src=x onerror=ran()><svg onload=ran()>{{7*7}}"
)

HOSTILE_COLUMNS = {
    "deliveries": ("last_error", "kind"),
    "endpoints": ("stop_reason",),
    "events": ("trace_id", "kind"),
    "jobs": ("trace_id",),
    "runs": ("reason", "trace_id"),
    "run_steps": ("step",),
    "tokens": ("name",),
    "messages": ("text",),
}


def usual(service: Service) -> Workspace:
    """A small shop with a receiver that failed for a while, an import with errors, automations and a sale."""
    workspace = service.open("Lovelace Flowers")
    caller = workspace.caller()
    for name in ("orders", "newsletter"):
        _endpoint(service, workspace, name)
    service.receiver.answers[f"/{workspace.id}/newsletter"] = Answer(503, b"<h1>Service Unavailable</h1>")
    automation = _automation(caller, "Welcome new customers")
    contacts = [_contact(caller, name) for name in NAMES]
    caller.apply("POST", "sales", {"contact_id": contacts[0], "amount": "19.90", "currency": "EUR"})
    starts, ends = (datetime.now(UTC) + timedelta(days=days) for days in (1, 2))
    booking = {"contact_id": contacts[1], "title": "Bouquet", "starts_at": _iso(starts), "ends_at": _iso(ends)}
    caller.apply("POST", "bookings", booking)
    _web_chat(caller, "Flowers")
    caller.apply("POST", f"automations/{automation}/start", {"contact_id": contacts[2]})
    # Refused when it runs: the address belongs to another contact.
    caller.call("PATCH", f"contacts/{contacts[3]}", {"email": "grace.hopper@example.com"})
    _import(workspace, service, [f"no address {number}" for number in range(2)])
    _wait_for_failures(service, workspace, len(NAMES))
    _invoice(service, workspace)
    return workspace


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
    automation = _automation(caller, RIGHT_TO_LEFT)
    contact = _contact(caller, "Ada Long")
    caller.apply("POST", f"automations/{automation}/start", {"contact_id": contact})
    _import(workspace, service, [f"no address {number}" for number in range(60)])
    return workspace


def hostile(service: Service) -> Workspace:
    """HTML and script in every field that a contact, a receiver or a member controls."""
    workspace = service.open(HOSTILE[:200])
    caller = workspace.caller()
    service.receiver.answers[f"/{workspace.id}/hook"] = Answer(503, HOSTILE.encode(), {"Content-Type": "text/html"})
    _endpoint(service, workspace, "hook", HOSTILE)
    contact = {"first_name": HOSTILE, "last_name": HOSTILE, "external_id": HOSTILE, "tags": [HOSTILE[:100]]}
    contact |= {"email": "eve@example.com", "custom_fields": {"note": HOSTILE}}
    contact_id = caller.apply("POST", "contacts", contact).data["id"]
    sale = {"contact_id": contact_id, "amount": "1.00", "currency": "EUR", "reference": HOSTILE}
    caller.apply("POST", "sales", sale)
    automation = _automation(caller, HOSTILE)
    caller.apply("POST", f"automations/{automation}/start", {"contact_id": contact_id, "variables": {"name": HOSTILE}})
    _web_chat(caller, HOSTILE)
    caller.call("PATCH", f"contacts/{_contact(caller, 'Eve Second')}", {"email": "eve@example.com"})
    _import(workspace, service, [json.dumps({"email": HOSTILE}), HOSTILE])
    _wait_for_failures(service, workspace, 1)
    # What only a stranger to our own checks could have left there.
    for table, columns in HOSTILE_COLUMNS.items():
        for column in columns:
            service.query(f"UPDATE {table} SET {column} = %s WHERE workspace_id = %s", HOSTILE, workspace.id)
    theirs = "delivery_id IN (SELECT id FROM deliveries WHERE workspace_id = %s)"
    for column in ("error", "response_body"):
        service.query(f"UPDATE attempts SET {column} = %s WHERE {theirs}", HOSTILE, workspace.id)
    problem = json.dumps({"status": 409, "title": HOSTILE, "detail": HOSTILE, "type": HOSTILE})
    service.query("UPDATE jobs SET problem = %s WHERE workspace_id = %s AND status = 'failed'", problem, workspace.id)
    return workspace


def _endpoint(service: Service, workspace: Workspace, name: str, description: str | None = None) -> None:
    address = service.receiver.url(f"/{workspace.id}/{name}")
    wanted = {"address": address, "events": ["*"], "description": description or name}
    workspace.caller().apply("POST", "webhooks/endpoints", wanted)


def _web_chat(caller: Caller, name: str) -> None:
    settings = {"origins": ["https://shop.example"]}
    caller.apply("POST", "channels", {"kind": "web_chat", "name": name, "settings": settings})


def _automation(caller: Caller, name: str) -> str:
    made = caller.apply("POST", "automations", {"name": name, "definition": {"triggers": [], "steps": STEPS}})
    caller.apply("POST", f"automations/{made.data['id']}/publish")
    return str(made.data["id"])


def _contact(caller: Caller, name: str) -> str:
    first, _, last = name.partition(" ")
    email = f"{first}.{last}@example.com".lower()
    made = caller.apply("POST", "contacts", {"email": email, "first_name": first, "last_name": last, "tags": ["vip"]})
    return str(made.data["id"])


def _import(workspace: Workspace, service: Service, bad_lines: Sequence[str]) -> None:
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


def _invoice(service: Service, workspace: Workspace) -> None:
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


def _wait_for_failures(service: Service, workspace: Workspace, number: int) -> None:
    count = "SELECT count(*) FROM deliveries WHERE workspace_id = %s AND status = 'failed'"
    wait_until(lambda: service.query(count, workspace.id)[0][0] >= number, 60, "deliveries have failed")


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
