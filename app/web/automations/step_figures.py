"""Figures of steps: the counts of a version on its picture, linked to exactly the runs counted."""

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
from app.web.automations.showings import BranchKey, Figure
from app.web.lists import address

# Periods by their names in the address: (label, days before today).
PERIODS: Mapping[str, tuple[str, int]] = {"day": ("Today", 0), "week": ("7 days", 7), "month": ("30 days", 30)}


def since() -> datetime | None:
    """Returns the beginning of the period in the address, in UTC; None for all time.

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


def figures_of(automation: Automation, counted: Mapping[str, Any], begins: datetime | None) -> dict[str, Figure]:
    """Returns the figures of each step, from a version's counts.

    `begins`: when the period of the counts begins; None for all time.
    """
    path = {"automation_id": automation.id, "version": counted["version"], "since": begins and begins.isoformat()}
    found = {}
    for step_id, of_step in counted["steps"].items():
        links = {at: _list_of({**path, "step": step_id, "at": at}) if of_step[at] else None for at in AT_STEP}
        found[step_id] = Figure(
            of_step["entered"],
            of_step["left"],
            of_step["waiting"],
            of_step["failed"],
            links["waiting"],
            links["failed"],
        )
    return found


def shares_of(counted: Mapping[str, Any]) -> dict[BranchKey, str]:
    """Returns each branch's percentage of the runs that left the step."""
    found: dict[BranchKey, str] = {}
    for step_id, of_step in counted["steps"].items():
        if not of_step.get("arms") or not of_step["left"]:
            continue
        left = of_step["left"]
        for key, taken in of_step["arms"].items():
            found[step_id, key] = _percent(taken, left)
        found[step_id, None] = _percent(left - sum(of_step["arms"].values()), left)
    return found


def _list_of(filters: Mapping[str, Any]) -> str:
    return url_for("run_pages.index", workspace=workspace_id(), **filters)


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.1f} %" if 0 < share < 1 or 99 < share < 100 else f"{share:.0f} %"
