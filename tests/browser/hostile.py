"""A workspace full of HTML and script: whatever a contact, a receiver, a provider or a member may have written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from app.lib import ids
from tests.browser import seeds
from tests.browser.services import SUPPORT, Service, Workspace
from tests.definitions import of_every_kind
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Answer

# Runs if it ever gets into a page as markup, an attribute or a script; `ran` counts.
TEXT = (
    "\"'></script></style></textarea></title><script>ran()</script><img src=x onerror=ran()><svg onload=ran()>{{7*7}}"
)
# What only a stranger to our own checks could have left there. In JSON, every text is.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "attempts": ("error", "response_body"),
    "audit_entries": ("reason", "ticket", "detail"),
    "bookings": ("title",),
    "broadcast_rows": ("reason",),
    "broadcasts": ("message", "problem"),
    "channels": ("account", "name", "problem"),
    "contacts": ("custom_fields", "first_name", "last_name", "locale", "timezone"),
    "deliveries": ("last_error", "kind"),
    "endpoints": ("address", "description", "stop_reason"),
    "events": ("trace_id", "kind"),
    "identities": ("address",),
    "import_errors": ("problem",),
    "invoices": ("lines", "plan"),
    "jobs": ("trace_id", "problem", "broke", "discard_reason"),
    "messages": ("text", "failure"),
    "notifications": ("detail",),
    "refused_requests": ("method", "path", "pointers", "problem", "trace_id"),
    "replay_rows": ("reason",),
    "replays": ("filter",),
    "run_steps": ("step", "detail"),
    "runs": ("reason", "trace_id", "failure", "variables", "saved", "event"),
    "sales": ("reference",),
    "tokens": ("name",),
    "visits": ("reason", "ticket"),
    "workspaces": ("name",),
}
# Which rows are meant, where it is not all that have the workspace's identifier.
_OWNED = {
    "notifications": "workspace_id = %s AND kind = 'endpoint_stopped'",
    "attempts": "delivery_id IN (SELECT id FROM deliveries WHERE workspace_id = %s)",
    "broadcast_rows": "broadcast_id IN (SELECT id FROM broadcasts WHERE workspace_id = %s)",
    "import_errors": "import_id IN (SELECT id FROM imports WHERE workspace_id = %s)",
    "replay_rows": "replay_id IN (SELECT id FROM replays WHERE workspace_id = %s)",
    "workspaces": "id = %s",
}
_JSON = {
    *("audit_entries.detail", "broadcasts.message", "channels.problem", "contacts.custom_fields"),
    *(
        "import_errors.problem",
        "invoices.lines",
        "jobs.broke",
        "jobs.problem",
        "messages.failure",
        "notifications.detail",
        "replays.filter",
        "run_steps.detail",
        "runs.failure",
    ),
    *("runs.variables", "runs.saved", "runs.event"),
}
# What JSON says that has said nothing yet.
_TOLD = {"code": TEXT, "detail": TEXT, "type": TEXT, "message": TEXT, "frames": [TEXT]}
# What has not ended, and when it ends writes over what is written into the tables here.
_UNDER_WAY = (
    "jobs WHERE status IN ('queued', 'running')",
    "events WHERE due_at IS NOT NULL",
    "runs WHERE due_at IS NOT NULL",
    "deliveries WHERE status = 'pending'",
    "replays WHERE finished_at IS NULL",
)
_NUMBER = re.compile(r"[0-9.:TZ+-]*")


def make(service: Service) -> Workspace:
    """The workspace, with a row of everything that a page shows."""
    workspace = service.open(TEXT[:200])
    caller = workspace.caller()
    service.receiver.answers[f"/{workspace.id}/hook"] = Answer(503, TEXT.encode(), {"Content-Type": "text/html"})
    seeds.make_endpoint(service, workspace, "hook", TEXT)
    contact = {"first_name": TEXT, "last_name": TEXT, "external_id": TEXT, "tags": [TEXT[:100]]}
    contact |= {"email": "eve@example.com", "custom_fields": {"note": TEXT}}
    contact_id = caller.apply("POST", "contacts", contact).data["id"]
    caller.apply("POST", "sales", {"contact_id": contact_id, "amount": "1.00", "currency": "EUR", "reference": TEXT})
    times = {"starts_at": "2030-01-01T10:00:00Z", "ends_at": "2030-01-01T11:00:00Z"}
    caller.apply("POST", "bookings", {"contact_id": contact_id, "title": TEXT, **times})
    # What it says in braces would be refused in a template.
    text = TEXT.partition("{{")[0]
    other = seeds.make_automation(caller, TEXT)
    automation = seeds.make_automation(caller, TEXT, of_every_kind(text, other))
    caller.apply("POST", f"automations/{automation}/publish")  # a second version, with which the first is compared
    caller.apply("POST", f"automations/{automation}/start", {"contact_id": contact_id, "variables": {"name": TEXT}})
    seeds.make_web_chat(caller, TEXT)
    seeds.make_invoice(service, workspace)
    service.query("UPDATE contacts SET phone = %s WHERE id = %s", TEXT, contact_id)
    _talk(service, workspace, contact_id)
    caller.apply("POST", "saved-replies", {"shortcut": "<script>ran()", "text": text})
    caller.apply("POST", "macros", {"name": TEXT[:255], "actions": [{"kind": "note", "text": text}]})
    chosen = {"field": "contact.first_name", "is": "contains", "value": text}
    segment_id = caller.apply("POST", "segments", {"name": TEXT[:255], "filter": chosen}).data["id"]
    message = {"text": text, "buttons": [{"id": "yes", "label": TEXT[:20]}]}
    caller.apply("POST", "broadcasts", {"name": TEXT[:255], "segment_id": segment_id, "message": message})
    second = seeds.make_contact(caller, "Eve Second")
    caller.call("PATCH", f"contacts/{second}", {"email": "eve@example.com"})
    seeds.import_lines(workspace, service, [json.dumps({"email": TEXT}), TEXT])
    seeds.wait_for_failures(service, workspace, 1)
    caller.apply("POST", "webhooks/replays", {"filter": {"statuses": ["failed"]}})
    _tell(service, workspace)
    wait_until(lambda: not _is_under_way(service, workspace), 120, "all has ended")
    for table, columns in COLUMNS.items():
        for column in columns:
            _defile(service, workspace, table, column)
    return workspace


def _talk(service: Service, workspace: Workspace, contact_id: str) -> None:
    """A conversation on the web chat, with a message that failed, and a change of several."""
    [(channel_id,)] = service.query("SELECT id FROM channels WHERE workspace_id = %s", workspace.id)
    ours = {"workspace_id": workspace.id, "contact_id": contact_id}
    talk = {**ours, "id": ids.new("cnv"), "channel_id": channel_id, "status": "open"}
    said = {**ours, "id": ids.new("msg"), "channel_id": channel_id, "direction": "out", "status": "failed"}
    said |= {"conversation_id": talk["id"], "author": json.dumps({"type": "member", "id": TEXT}), "text": TEXT}
    known = {**ours, "id": ids.new("idn"), "channel_kind": "web_chat", "external_id": TEXT, "address": TEXT}
    choice = {"view": "all", "filters": {"label": TEXT}, "member_id": None}
    chosen = {"id": ids.new("sel"), "workspace_id": workspace.id, "job_id": ids.new("job"), "total": 1, "changed": 1}
    chosen |= {"choice": json.dumps(choice), "action": json.dumps({"do": "label", "label": TEXT})}
    rows = (("conversations", talk), ("messages", said), ("identities", known), ("selections", chosen))
    for table, row in rows:
        _insert(service, table, row)


def _tell(service: Service, workspace: Workspace) -> None:
    """A visit of support staff, a strange address that is a member's, a notification and a refused request."""
    [(support_id,)] = service.query("SELECT id FROM accounts WHERE email = %s", SUPPORT)
    stranger = {"id": ids.new("acc"), "email": f"{TEXT}@{workspace.id}.example"}
    member = {"id": ids.new("mem"), "workspace_id": workspace.id, "account_id": stranger["id"], "role": "agent"}
    detail = json.dumps({"endpoint_id": TEXT, "address": TEXT, "reason": TEXT})
    told = {
        "id": ids.new("ntf"),
        "workspace_id": workspace.id,
        "kind": "endpoint_stopped",
        "once": "x",
        "detail": detail,
    }
    visit = {
        "id": ids.new("vis"),
        "workspace_id": workspace.id,
        "account_id": support_id,
        "reason": TEXT,
        "ticket": TEXT,
    }
    refused = {"id": ids.new("ref"), "workspace_id": workspace.id, "created_at": "2026-01-01T00:00:00Z", "status": 422}
    refused |= dict.fromkeys(("token_id", "trace_id", "method", "path", "problem"), TEXT)
    told_rows = (("accounts", stranger), ("members", member), ("notifications", told), ("refused_requests", refused))
    for table, row in told_rows:
        _insert(service, table, row)
    _insert(service, "visits", {**visit, "created_at": "2026-01-01T00:00:00Z", "expires_at": "2100-01-01T00:00:00Z"})


def _is_under_way(service: Service, workspace: Workspace) -> bool:
    return any(service.query(f"SELECT FROM {each} AND workspace_id = %s LIMIT 1", workspace.id) for each in _UNDER_WAY)


def _insert(service: Service, table: str, row: Mapping[str, Any]) -> None:
    columns, values = ", ".join(row), ", ".join(["%s"] * len(row))
    service.query(f"INSERT INTO {table} ({columns}) VALUES ({values})", *row.values())


def _defile(service: Service, workspace: Workspace, table: str, column: str) -> None:
    theirs = _OWNED.get(table, "workspace_id = %s")
    value = TEXT
    if f"{table}.{column}" in _JSON:
        found = service.query(
            f"SELECT {column} FROM {table} WHERE {theirs} AND {column} IS NOT NULL LIMIT 1", workspace.id
        )
        value = json.dumps((found and _defiled(found[0][0])) or _TOLD)
    new = "ARRAY[%s]" if column == "pointers" else "%s"
    service.query(f"UPDATE {table} SET {column} = {new} WHERE {theirs}", value, workspace.id)


def _defiled(value: Any) -> Any:
    """The same, with every text but numbers and times as TEXT."""
    if isinstance(value, dict):
        return {name: _defiled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_defiled(each) for each in value]
    return TEXT if isinstance(value, str) and not _NUMBER.fullmatch(value) else value
