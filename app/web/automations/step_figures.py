"""Figures: a version's counts on its picture, with links to exactly the runs that were counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from flask import request, url_for

from app.domain.automations import counts
from app.lib import clock
from app.models.automations import Automation
from app.models.runs import AT_STEP
from app.web.access import workspace_id
from app.web.automations.showings import BranchKey
from app.web.lists import address

# Periods by their names in the address: (label, days before today at which the period begins).
PERIODS: Mapping[str, tuple[str, int]] = {"day": ("Today", 0), "week": ("7 days", 7), "month": ("30 days", 30)}


def since() -> datetime | None:
    """Returns when the period in the address begins: a midnight in UTC; None for all time.

    Never earlier than the first day that counts are offered for.
    """
    asked = request.args.get("period", "")
    if asked not in PERIODS:
        return None
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return max(midnight - timedelta(days=PERIODS[asked][1]), counts.first_offered()[1])


def periods() -> list[tuple[str, str, bool]]:
    """Returns (label, address of this page for it, whether it is chosen) for every period."""
    asked = request.args.get("period", "")
    named = [("", "All time"), *((name, label) for name, (label, _) in PERIODS.items())]
    return [(label, address(period=name or None), name == (asked if asked in PERIODS else "")) for name, label in named]


def figures_of(automation: Automation, counted: Mapping[str, Any], begins: datetime | None) -> dict[str, Any]:
    """Returns the counts of each step from a version's counts, with links to its runs.

    `waiting_at`, `failed_at`: the address of the list of these runs; None if there are none. `begins`: when the period
    of the counts begins; None for all time.
    """
    path = {"automation_id": automation.id, "version": counted["version"], "since": begins and begins.isoformat()}
    found = {}
    for step_id, of_step in counted["steps"].items():
        found[step_id] = dict(of_step)
        for at in AT_STEP:
            runs = {**path, "step": step_id, "at": at}
            its_address = url_for("run_pages.index", workspace=workspace_id(), **runs) if of_step[at] else None
            found[step_id][f"{at}_at"] = its_address
    return found


def shares_of(counted: Mapping[str, Any]) -> dict[BranchKey, str]:
    """Returns the share of runs that took each branch, of those that left its step, such as "12 %"."""
    found: dict[BranchKey, str] = {}
    for step_id, of_step in counted["steps"].items():
        arms, left = of_step.get("arms"), of_step["left"]
        if arms and left:
            found |= {(step_id, key): _percent(taken, left) for key, taken in arms.items()}
            found[step_id, None] = _percent(left - sum(arms.values()), left)
    return found


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.1f} %" if 0 < share < 1 or 99 < share < 100 else f"{share:.0f} %"
