"""Billing: the plan of a workspace and its usage in the current month."""

from __future__ import annotations

from flask import Response
from marshmallow import fields

from app.api.authentication import authorize, caller
from app.api.lists import envelope
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.billing import billing
from app.domain.billing.charges import money
from app.domain.billing.meters import METERS
from app.lib.schemas import ResponseBody, about, time

blueprint = Blueprint("billing", __name__, description="The plan and the usage.")


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


UsageSchema: type[ResponseBody] = type(
    "UsageSchema", (ResponseBody,), {meter: fields.Nested(MeterSchema) for meter in METERS}
)


class BillingSchema(ResponseBody):
    plan = fields.Nested(PlanSchema)
    next_plan = fields.Nested(
        PlanSchema, allow_none=True, metadata=about("The plan of the next month; null: unchanged.")
    )
    period = fields.Nested(PeriodSchema)
    usage = fields.Nested(UsageSchema)
    total = money("What the period has cost so far, before tax.")


@blueprint.route("/workspaces/<workspace>/billing", methods=["GET"])
@authorize("billing")
@blueprint.response(200, envelope(BillingSchema))
def show_billing() -> Response:
    """Show the plan and its usage in the current month."""
    return respond(200, {"data": billing.represent(caller().workspace_id)})
