"""Warns workspaces that have used most of what their plan includes."""

from __future__ import annotations

from app.database import now, rows
from app.domain.billing import plans, usage
from app.domain.billing.months import Month
from app.domain.people import notifications

PERCENT = 80


def warn(after: str = "", limit: int = 500) -> tuple[str, int]:
    """Warns workspaces that have used PERCENT of a meter this month.

    Each workspace is warned once a month for each plan and meter. Examines the next `limit` workspaces after `after`.
    Returns the last one, to continue after ('' at the end), and how many warnings were made.
    """
    workspace_ids = [
        id for (id,) in rows("SELECT id FROM workspaces WHERE id > %s ORDER BY id LIMIT %s", (after, limit))
    ]
    month = Month.of(now())
    totals, plan_ids = usage.totals(workspace_ids, month), plans.ids_of(workspace_ids, month)
    made = sum(
        _warn(workspace_id, plan_ids[workspace_id], month, meter, used)
        for workspace_id, meters in totals.items()
        for meter, used in meters.items()
    )
    return (workspace_ids[-1] if len(workspace_ids) == limit else ""), made


def _warn(workspace_id: str, plan_id: str, month: Month, meter: str, used: int) -> bool:
    allowance = plans.PLANS[plan_id].allowances.get(meter) if plan_id in plans.PLANS else None
    if allowance is None or not allowance.included or used * 100 < allowance.included * PERCENT:
        return False
    percent = used * 100 // allowance.included
    detail = {"meter": meter, "used": used, "included": allowance.included, "percent": percent}
    return notifications.note(workspace_id, "usage_high", f"{month.first:%Y-%m} {plan_id} {meter}", detail)
