"""Plans: their prices and what they include (`plans.toml`), and which one a workspace has.

A plan is not a limit: nothing is refused because of a plan. Usage beyond an allowance is charged at the allowance's
price; without a price, it is free.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from app.database import count, now, rows, transaction
from app.domain.billing.months import Month
from app.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much of a meter a plan includes. `beyond`: the price of each further unit; None if free."""

    included: int
    beyond: Decimal | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: the price of a month, before tax, and what it includes of each meter."""

    id: str
    name: str
    currency: str
    price: Decimal
    allowances: Mapping[str, Allowance]


def of(workspace_id: str, *months: Month) -> tuple[datetime, list[Plan]]:
    """Returns when the workspace was created, and its plan in each of the months, oldest first.

    Raises Unavailable if `plans.toml` no longer has one of the plans.
    """
    found = rows(
        """
        SELECT created_at, (
            SELECT plan FROM subscriptions WHERE workspace_id = id AND since <= month ORDER BY since DESC LIMIT 1)
        FROM workspaces CROSS JOIN unnest(%s::date[]) AS month WHERE id = %s ORDER BY month
        """,
        ([month.first for month in months], workspace_id),
    )
    held = [plan_id or DEFAULT for _, plan_id in found]
    if not PLANS.keys() >= set(held):
        raise Unavailable("The plan of this workspace is not known to the service at this time.")
    return found[0][0], [PLANS[plan_id] for plan_id in held]


def ids_of(workspace_ids: Collection[str], month: Month) -> dict[str, str]:
    """Returns the id of each workspace's plan in the month, whether or not `plans.toml` still has it."""
    given = dict(
        rows(
            """
            SELECT DISTINCT ON (workspace_id) workspace_id, plan FROM subscriptions
            WHERE workspace_id = ANY(%s) AND since <= %s ORDER BY workspace_id, since DESC
            """,
            (list(workspace_ids), month.first),
        )
    )
    return {id: given.get(id, DEFAULT) for id in workspace_ids}


def change(workspace_id: str, plan_id: str, *, at_once: bool = False) -> Month:
    """Changes the plan from next month on; returns the first month of the new plan.

    `at_once`: changes it for the whole current month. Drops changes planned for later. Past months keep their plan.
    Safe to repeat.
    """
    present = Month.of(now())
    since = present if at_once else present.next
    with transaction():
        count("DELETE FROM subscriptions WHERE workspace_id = %s AND since >= %s", (workspace_id, since.first))
        count(
            "INSERT INTO subscriptions (workspace_id, since, plan) VALUES (%s, %s, %s)",
            (workspace_id, since.first, plan_id),
        )
    return since


def _read(document: Mapping[str, Any]) -> dict[str, Plan]:
    return {
        id: Plan(
            id,
            plan["name"],
            plan["currency"],
            Decimal(plan["price"]),
            {meter: _allowance(allowed) for meter, allowed in plan["meters"].items()},
        )
        for id, plan in document["plans"].items()
    }


def _allowance(allowed: Mapping[str, Any]) -> Allowance:
    return Allowance(allowed["included"], Decimal(allowed["beyond"]) if "beyond" in allowed else None)


_DOCUMENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
PLANS: Mapping[str, Plan] = _read(_DOCUMENT)
DEFAULT: str = _DOCUMENT["default"]
