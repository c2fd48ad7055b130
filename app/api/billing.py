"""Billing: the plan of a workspace, and what it used this month."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields

from app.api.authentication import authorize, caller
from app.api.lists import collection, envelope
from app.api.parsing import Blueprint, Schema
from app.api.responses import respond, time
from app.domain import billing
from app.domain.meters import METERS

blueprint = Blueprint("billing", __name__, description="The plan, and what was used.")


def money(description: str, **options: Any) -> fields.String:
    """An amount in a response: a decimal string."""
    metadata = {"description": description, "pattern": r"^[0-9]+(\.[0-9]+)?$", "example": "49.00"}
    return fields.String(required=True, metadata=metadata, **options)


class PlanSchema(Schema):
    id = fields.String(required=True)
    name = fields.String(required=True)
    price = money("Of a month, before tax.")
    currency = fields.String(required=True, metadata={"description": "ISO 4217.", "example": "EUR"})


class PeriodSchema(Schema):
    start = time("The beginning of the month, in UTC.")
    end = time("The beginning of the next.")


class MeterSchema(Schema):
    used = fields.Integer(required=True, metadata={"description": "Since the period began."})
    included = fields.Integer(required=True, metadata={"description": "How much of it the plan includes."})
    unit_price = money("Of each unit beyond; null: more costs nothing.", allow_none=True)
    amount = money("What the units beyond cost by now.")


UsageSchema: type[Schema] = type(
    "UsageSchema", (Schema,), {meter: fields.Nested(MeterSchema, required=True) for meter in METERS}
)


class BillingSchema(Schema):
    plan = fields.Nested(PlanSchema, required=True)
    next_plan = fields.Nested(
        PlanSchema, required=True, allow_none=True, metadata={"description": "That of the next month; null: the same."}
    )
    period = fields.Nested(PeriodSchema, required=True)
    usage = fields.Nested(UsageSchema, required=True)
    total = money("What the period costs by now, before tax.")


@collection(blueprint, "/billing")
@authorize("billing")
@blueprint.response(200, envelope(BillingSchema))
def show_billing() -> Response:
    """Show the plan, and what was used of it this month."""
    return respond(200, {"data": billing.represent(caller().workspace_id)})
