"""Billing: the current month of a workspace, and its cost so far."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from app.domain.billing import charges, plans, usage
from app.domain.billing.charges import money
from app.domain.billing.meters import METERS
from app.domain.billing.months import Month
from app.lib import clock
from app.lib.schemas import ResponseBody, about, time


class PlanSchema(ResponseBody):
    id = fields.String()
    name = fields.String()
    price = money("The price of a month, before tax.")
    currency = fields.String(metadata=about("ISO 4217.", example="EUR"))


class PeriodSchema(ResponseBody):
    start = time("The beginning of the month, in UTC.")
    end = time("The beginning of the next month.")


class MeterSchema(ResponseBody):
    used = fields.Integer(metadata=about("How much was used since the period began."))
    included = fields.Integer(metadata=about("How much of it the plan includes."))
    unit_price = money("The price of each unit beyond; null: free.", allow_none=True)
    amount = money("What the units beyond have cost so far.")


UsageSchema = ResponseBody.from_dict({meter: fields.Nested(MeterSchema) for meter in METERS}, name="UsageSchema")


class BillingSchema(ResponseBody):
    plan = fields.Nested(PlanSchema)
    next_plan = fields.Nested(
        PlanSchema, allow_none=True, metadata=about("The plan of the next month; null: unchanged.")
    )
    period = fields.Nested(PeriodSchema)
    usage = fields.Nested(UsageSchema)
    total = money("What the period has cost so far, before tax.")


def represent(workspace_id: str) -> dict[str, Any]:
    """Returns this month's plan, usage and charges. Raises Unavailable if the plan is unknown."""
    month = Month.of(clock.now())
    made_at, [plan, next_plan] = plans.of(workspace_id, month, month.next)
    lines = charges.lines(plan, usage.of(workspace_id, month), month, made_at)
    return {
        "plan": PlanSchema.of(plan),
        "next_plan": None if next_plan is plan else PlanSchema.of(next_plan),
        "period": {"start": month.starts_at, "end": month.ends_at},
        "usage": {line.meter: MeterSchema.of(line, **charges.prices(line)) for line in lines if line.meter},
        "total": charges.total(lines),
    }
