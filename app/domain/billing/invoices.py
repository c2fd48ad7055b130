"""Invoices: what a workspace owes for a past month, created once and never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from marshmallow import fields, validate
from peewee import fn

from app.database import count, rows, transaction
from app.domain.billing import charges, plans, usage
from app.domain.billing.charges import LineSchema, money
from app.domain.billing.months import Month
from app.domain.billing.plans import PLANS
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time
from app.models.invoices import Invoice, Unbilled
from app.models.workspaces import Workspace

log = structlog.get_logger(__name__)

# The most workspaces for which one transaction closes a month.
BATCH = 500


def close() -> int:
    """Closes the next batch of the oldest month that is over and counted.

    Returns how many invoices it created. A workspace that owes nothing gets none. A workspace whose plan is unknown is
    skipped, and retried at every call. Safe to run concurrently: a batch and its position are stored in one
    transaction, under a lock on the month.
    """
    with transaction():
        unclosed = rows(
            """
            SELECT month, position FROM billing_periods WHERE closed_at IS NULL
            ORDER BY month LIMIT 1 FOR UPDATE SKIP LOCKED
            """
        )
        if not unclosed:
            return 0
        made = _make_up()
        month, position = Month(unclosed[0][0]), unclosed[0][1]
        if usage.is_counted(month):
            workspaces = _next(month, position)
            made += _make(month, workspaces)
            _move_on(month, workspaces)
    return made


class InvoiceSchema(ResponseBody):
    id = fields.String()
    number = fields.String(metadata={"example": "BHP-000042"})
    status = fields.String(validate=validate.OneOf(["open"]), metadata=about("`open`: not paid yet."))
    plan = fields.String()
    currency = fields.String(metadata=about("ISO 4217.", example="EUR"))
    period_start = time("The beginning of the month, in UTC.")
    period_end = time("The beginning of the next month.")
    lines = fields.List(fields.Nested(LineSchema))
    total = money("The sum of the lines, before tax.")
    created_at = time("When the invoice was issued.")


def represent(invoice: Invoice) -> dict[str, Any]:
    """Returns the invoice as the API shows it."""
    return InvoiceSchema.of(invoice, number=f"BHP-{invoice.number:06}")


def _next(month: Month, position: str) -> list[Workspace]:
    """Returns the workspaces after `position` that existed in the month and have no invoice for it."""
    has_one = Invoice.select().where(Invoice.workspace_id == Workspace.id, Invoice.period_start == month.starts_at)
    wanted = Workspace.select().where(
        Workspace.id > position, Workspace.created_at < month.ends_at, ~fn.EXISTS(has_one)
    )
    return list(wanted.order_by(Workspace.id).limit(BATCH))


def _make_up() -> int:
    """Retries the workspaces that were skipped; returns how many invoices it created."""
    made = 0
    for (first,) in rows("SELECT DISTINCT month FROM unbilled ORDER BY month"):
        left_out = Unbilled.select(Unbilled.workspace_id).where(Unbilled.month == first)
        made += _make(Month(first), list(Workspace.select().where(Workspace.id.in_(left_out)).order_by(Workspace.id)))
    return made


def _make(month: Month, workspaces: Sequence[Workspace]) -> int:
    workspace_ids = [workspace.id for workspace in workspaces]
    plan_of, used = plans.ids_of(workspace_ids, month), usage.totals(workspace_ids, month)
    _leave_out(month, plan_of)
    [(number,)] = rows("SELECT coalesce(max(number), 0) FROM invoices")
    made: list[dict[str, Any]] = []
    for workspace in workspaces:
        if (plan := PLANS.get(plan_of[workspace.id])) is None:
            continue
        lines = charges.lines(plan, used[workspace.id], month, workspace.created_at)
        if total := charges.total(lines):
            made.append(
                {
                    "id": ids.new("inv"),
                    "workspace_id": workspace.id,
                    "number": number + len(made) + 1,
                    "plan": plan.id,
                    "currency": plan.currency,
                    "period_start": month.starts_at,
                    "period_end": month.ends_at,
                    "lines": [charges.represent(line) for line in lines],
                    "total": total,
                }
            )
    if made:
        Invoice.insert_many(made).execute()
    return len(made)


def _leave_out(month: Month, plan_of: Mapping[str, str]) -> None:
    """Records which of the workspaces are skipped because their plan is unknown."""
    unknown = {id: plan for id, plan in plan_of.items() if plan not in PLANS}
    count("DELETE FROM unbilled WHERE month = %s AND workspace_id = ANY(%s)", (month.first, list(plan_of)))
    if unknown:
        left_out = "INSERT INTO unbilled (month, workspace_id) SELECT %s, unnest(%s::text[])"
        count(left_out, (month.first, list(unknown)))
        withdrawn = sorted({*unknown.values()})
        log.error("invoices.plan_unknown", plans=withdrawn, workspaces=len(unknown), month=month.first)


def _move_on(month: Month, workspaces: Sequence[Workspace]) -> None:
    if len(workspaces) == BATCH:
        position = workspaces[-1].id
        count("UPDATE billing_periods SET position = %s WHERE month = %s", (position, month.first))
    else:
        count("UPDATE billing_periods SET closed_at = now() WHERE month = %s", (month.first,))
        count("INSERT INTO billing_periods (month) VALUES (%s) ON CONFLICT DO NOTHING", (month.next.first,))
