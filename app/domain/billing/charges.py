"""Charges: the cost of a month under a plan, in lines exact to the cent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from app.domain.billing.months import Month
from app.domain.billing.plans import Allowance, Plan

_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Line:
    """The charge for the plan itself (`meter` None), or for the `quantity` of a meter beyond what is included.

    `unit_price` is None if further units are free.
    """

    description: str
    meter: str | None
    used: int | None
    included: int | None
    quantity: int
    unit_price: Decimal | None
    amount: Decimal


def lines(plan: Plan, used: Mapping[str, int], month: Month, made_at: datetime) -> list[Line]:
    """A line for the plan's price, and one for each of its meters.

    The price of the month in which a workspace was created is prorated by its days, the first included; what the plan
    includes is not. Only lines are rounded, to the cent, half a cent up.
    """
    days = month.days_since(made_at)
    part = "" if days == month.days else f", {days} of {month.days} days"
    price = _to_cents(plan.price * days / month.days)
    first = Line(f"{plan.name} plan{part}", None, None, None, 1, plan.price, price)
    return [first, *(_overage(meter, each, used[meter]) for meter, each in plan.allowances.items())]


def total(charged: Iterable[Line]) -> Decimal:
    """The sum of the lines."""
    return sum((line.amount for line in charged), Decimal("0.00"))


def represent(line: Line) -> dict[str, Any]:
    """The line as the API shows it."""
    return {
        "description": line.description,
        "meter": line.meter,
        "used": line.used,
        "included": line.included,
        "quantity": line.quantity,
        "unit_price": None if line.unit_price is None else f"{line.unit_price:f}",
        "amount": f"{line.amount:f}",
    }


def _overage(meter: str, allowance: Allowance, used: int) -> Line:
    quantity = max(0, used - allowance.included)
    description = f"{meter.replace('_', ' ').capitalize()} beyond those included"
    amount = _to_cents(quantity * (allowance.beyond or Decimal(0)))
    return Line(description, meter, used, allowance.included, quantity, allowance.beyond, amount)


def _to_cents(amount: Decimal) -> Decimal:
    return amount.quantize(_CENT, ROUND_HALF_UP)
