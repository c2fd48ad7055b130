"""Charges: the cost of a month under a plan, in lines exact to the cent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from marshmallow import fields

from app.domain.billing.months import Month
from app.domain.billing.plans import Allowance, Plan
from app.lib.schemas import ResponseBody, about

_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Line:
    """The charge for the plan itself, or for the units of a meter beyond what the plan includes.

    `meter`: None for the plan. `quantity`: the number of units charged. `unit_price`: None if further units are free.
    """

    description: str
    meter: str | None
    used: int | None
    included: int | None
    quantity: int
    unit_price: Decimal | None
    amount: Decimal


def money(description: str, **options: Any) -> fields.String:
    """Returns a schema field for an amount of money in a response: a decimal string."""
    metadata = {"description": description, "pattern": r"^[0-9]+(\.[0-9]+)?$", "example": "49.00"}
    return fields.String(metadata=metadata, **options)


def lines(plan: Plan, used: Mapping[str, int], month: Month, made_at: datetime) -> list[Line]:
    """Returns a line for the plan's price, and one for each of its meters.

    In the month in which the workspace was created, the price is prorated by days, the first day included. The plan's
    allowances are not prorated. Only lines are rounded: to the cent, half a cent up.
    """
    days = month.days_since(made_at)
    part = "" if days == month.days else f", {days} of {month.days} days"
    price = _to_cents(plan.price * days / month.days)
    first = Line(f"{plan.name} plan{part}", None, None, None, 1, plan.price, price)
    return [first, *(_overage(meter, each, used[meter]) for meter, each in plan.allowances.items())]


def total(charged: Iterable[Line]) -> Decimal:
    """Returns the total amount of the lines; 0.00 without lines."""
    return sum((line.amount for line in charged), Decimal("0.00"))


class LineSchema(ResponseBody):
    description = fields.String(metadata={"example": "Deliveries beyond those included"})
    meter = fields.String(allow_none=True, metadata=about("null: the line is for the plan itself."))
    used = fields.Integer(allow_none=True)
    included = fields.Integer(allow_none=True)
    quantity = fields.Integer(metadata=about("How much was used beyond what the plan includes."))
    unit_price = money("null: free.", allow_none=True)
    amount = money("Rounded to the cent, half a cent up.")


def represent(line: Line) -> dict[str, Any]:
    """Returns the line as the API shows it."""
    return LineSchema.of(line, **prices(line))


def prices(line: Line) -> dict[str, str | None]:
    """Returns the unit price and the amount of the line, as decimal strings in the API's form."""
    return {"unit_price": None if line.unit_price is None else f"{line.unit_price:f}", "amount": f"{line.amount:f}"}


def _overage(meter: str, allowance: Allowance, used: int) -> Line:
    quantity = max(0, used - allowance.included)
    description = f"{meter.replace('_', ' ').capitalize()} beyond those included"
    amount = _to_cents(quantity * (allowance.beyond or Decimal(0)))
    return Line(description, meter, used, allowance.included, quantity, allowance.beyond, amount)


def _to_cents(amount: Decimal) -> Decimal:
    return amount.quantize(_CENT, ROUND_HALF_UP)
