"""What workspaces did, and owe, in a leap February to come, for the tests of billing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from app.database import rows
from app.domain import invoices, usage
from app.domain.meters import METERS
from app.domain.plans import Allowance, Plan
from app.lib import ids
from app.lib.months import Month

BEGIN = datetime(2028, 2, 1, tzinfo=UTC)
END = datetime(2028, 3, 1, tzinfo=UTC)
FEBRUARY = Month.of(BEGIN)
MOMENT = timedelta(milliseconds=1)
SETTLED = usage.SETTLED_AFTER


def plan(price: str = "10.00", beyond: str | None = "0.005", included: int = 2) -> Plan:
    """A plan that treats all meters alike."""
    allowance = Allowance(included, None if beyond is None else Decimal(beyond))
    return Plan("small", "Small", "EUR", Decimal(price), dict.fromkeys(METERS, allowance))


def id_at(prefix: str, at: datetime) -> str:
    return ids.bound(prefix, at)[:-16] + ids.new(prefix)[-16:]


def deliver(workspace_id: str, *moments: datetime) -> None:
    """A delivery was made at each of the moments."""
    rows(
        "INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at)"
        " SELECT new.id, %s, 'evt_1', 'whe_1', 'tag.added', 'delivered', NULL FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, [id_at("dlv", at) for at in moments]),
    )


def happen(workspace_id: str, contact_id: str, *moments: datetime, kind: str = "tag.added") -> None:
    """An event of the contact happened at each of the moments."""
    rows(
        "INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)"
        " SELECT new.id, %s, %s, %s, '', '{}', now() FROM unnest(%s::text[]) AS new(id)",
        (workspace_id, kind, contact_id, [id_at("evt", at) for at in moments]),
    )


def begin_billing() -> None:
    """Billing begins with February."""
    usage.count_up(BEGIN)


def count_until(at: datetime) -> None:
    """Counts all that was made before `at`, in as many passes as it takes."""
    usage.count_up(at + SETTLED)
    while rows("SELECT 1 FROM usage_progress WHERE counted_until < %s", (at,)):
        usage.count_up(at + SETTLED)


def skip_to(at: datetime) -> None:
    """As if all that was made before `at` had been counted, and were nothing."""
    rows("UPDATE usage_progress SET counted_until = %s", (at,))


def close_february(*workspace_ids: str) -> None:
    """Each of the workspaces has an invoice for a February of the smallest plan that costs something."""
    for workspace_id in workspace_ids:
        rows("INSERT INTO subscriptions VALUES (%s, %s, 'growth')", (workspace_id, FEBRUARY.first))
    begin_billing()
    skip_to(END)
    invoices.close()


def use(workspace_id: str, month: Month, **amounts: int) -> None:
    """The workspace used so much in the month, by what was counted."""
    for meter, amount in amounts.items():
        rows(
            "INSERT INTO usage_days (workspace_id, day, meter, amount) VALUES (%s, %s, %s, %s)",
            (workspace_id, month.first, meter, amount),
        )
