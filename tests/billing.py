"""Usage and invoices of workspaces in a future leap February, for the tests of billing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from app.database import rows
from app.domain.billing import invoices, usage
from app.domain.billing.meters import METERS
from app.domain.billing.months import Month
from app.domain.billing.plans import Allowance, Plan
from app.lib import ids

BEGIN = datetime(2028, 2, 1, tzinfo=UTC)
END = datetime(2028, 3, 1, tzinfo=UTC)
FEBRUARY = Month.of(BEGIN)
MOMENT = timedelta(milliseconds=1)
SETTLED = usage.SETTLED_AFTER


def plan(price: str = "10.00", beyond: str | None = "0.005", included: int = 2) -> Plan:
    """A plan with the same allowance for every meter."""
    allowance = Allowance(included, None if beyond is None else Decimal(beyond))
    return Plan("small", "Small", "EUR", Decimal(price), dict.fromkeys(METERS, allowance))


def id_at(prefix: str, at: datetime) -> str:
    return ids.bound(prefix, at)[:-16] + ids.new(prefix)[-16:]


def deliver(workspace_id: str, *moments: datetime) -> None:
    """Creates a delivery at each of the moments."""
    rows(
        "INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at)"
        " SELECT new.id, %s, 'evt_1', 'whe_1', 'tag.added', 'delivered', NULL FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, [id_at("dlv", at) for at in moments]),
    )


def happen(workspace_id: str, contact_id: str, *moments: datetime, kind: str = "tag.added") -> None:
    """Records an event of the contact at each of the moments."""
    rows(
        "INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)"
        " SELECT new.id, %s, %s, %s, '', '{}', now() FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, kind, contact_id, [id_at("evt", at) for at in moments]),
    )


def begin_runs(workspace_id: str, *moments: datetime, status: str = "queued", reason: str | None = None) -> None:
    """Begins a run at each of the moments."""
    rows(
        "INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, trace_id, status, reason)"
        " SELECT new.id, %s, 'aut_1', 1, 'con_1', '', %s, %s FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, status, reason, [id_at("run", at) for at in moments]),
    )


def queue_messages(workspace_id: str, number: int = 1, author: str = "api") -> list[str]:
    """Queues messages to a contact, and returns their identifiers."""
    made = [ids.new("msg") for _ in range(number)]
    rows(
        "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, status, author)"
        " SELECT new.id, %s, 'cnv_1', 'con_1', 'out', 'queued', json_build_object('type', %s::text)"
        " FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, author, made),
    )
    return made


def send_messages(workspace_id: str, *moments: datetime) -> None:
    """Sends a message at each of the moments; all were queued long before."""
    for message_id, at in zip(queue_messages(workspace_id, len(moments)), moments, strict=True):
        rows("UPDATE messages SET status = 'sent' WHERE id = %s", (message_id,))
        rows("UPDATE messages SET sent_at = %s WHERE id = %s", (at, message_id))


def begin_billing() -> None:
    """Starts billing with February."""
    usage.count_up(BEGIN)


def count_until(at: datetime) -> None:
    """Counts everything created before `at`."""
    usage.count_up(at + SETTLED)
    while rows("SELECT 1 FROM usage_progress WHERE counted_until < %s", (at,)):
        usage.count_up(at + SETTLED)


def skip_to(at: datetime) -> None:
    """Marks everything created before `at` as counted, with no usage."""
    rows("UPDATE usage_progress SET counted_until = %s", (at,))


def close_february(*workspace_ids: str) -> None:
    """Gives each workspace an invoice for February, on the cheapest paid plan."""
    for workspace_id in workspace_ids:
        rows("INSERT INTO subscriptions VALUES (%s, %s, 'growth')", (workspace_id, FEBRUARY.first))
    begin_billing()
    skip_to(END)
    invoices.close()


def use(workspace_id: str, month: Month, **amounts: int) -> None:
    """Adds counted usage of the workspace to the month."""
    for meter, amount in amounts.items():
        rows(
            "INSERT INTO usage_days (workspace_id, day, meter, amount) VALUES (%s, %s, %s, %s)",
            (workspace_id, month.first, meter, amount),
        )
