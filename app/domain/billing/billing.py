"""Billing: the current month of a workspace, and its cost so far."""

from __future__ import annotations

from typing import Any

from app.domain.billing import charges, plans, usage
from app.domain.billing.months import Month
from app.domain.billing.plans import Plan
from app.lib import clock


def represent(workspace_id: str) -> dict[str, Any]:
    """The plan, period, usage and charges of the current month. Raises Unavailable if the plan is unknown."""
    month = Month.of(clock.now())
    made_at, [plan, next_plan] = plans.of(workspace_id, month, month.next)
    lines = charges.lines(plan, usage.of(workspace_id, month), month, made_at)
    return {
        "plan": _represent_plan(plan),
        "next_plan": None if next_plan is plan else _represent_plan(next_plan),
        "period": {"start": month.starts_at, "end": month.ends_at},
        "usage": {line.meter: _represent_usage(line) for line in lines if line.meter},
        "total": charges.total(lines),
    }


def _represent_plan(plan: Plan) -> dict[str, Any]:
    return {"id": plan.id, "name": plan.name, "price": plan.price, "currency": plan.currency}


def _represent_usage(line: charges.Line) -> dict[str, Any]:
    shown = charges.represent(line)
    return {name: shown[name] for name in ("used", "included", "unit_price", "amount")}
