"""The page of an automation's results."""

from __future__ import annotations

from typing import Any

from app.domain.automations import counts
from app.lib import clock, ids
from app.models.automations import AutomationDelta
from tests.automations import carry_on
from tests.cast import Api
from tests.pages import Person

GOAL = {"event": "sale.recorded", "within_seconds": 604_800}
SPLIT = {
    "id": "coupon",
    "kind": "split",
    "arms": [{"name": name, "percent": 50, "steps": []} for name in ("ten", "fifteen")],
}
PAUSE = {"id": "pause", "kind": "wait", "seconds": 86_400}


def count(automation_id: str, key: str, amount: int, step: str = "") -> None:
    """Counts of version 1, as if such runs had been there."""
    of = {"workspace_id": "ws", "automation_id": automation_id, "version": 1, "step": step}
    hour = clock.now().replace(minute=0, second=0, microsecond=0)
    AutomationDelta.insert(id=ids.new("dlt"), **of, key=key, hour=hour, amount=amount).execute()


def compared(api: Api, ten: tuple[int, int], fifteen: tuple[int, int]) -> str:
    """An automation with a split, of whose arms so many of so many runs have reached the goal."""
    automation_id = str(api.published(SPLIT, PAUSE, goal=GOAL))
    for name, (goals, taken) in (("ten", ten), ("fifteen", fifteen)):
        count(automation_id, f"arm:{name}", taken, "coupon")
        count(automation_id, f"goal_arm:{name}", goals, "coupon")
        count(automation_id, "completed", taken)
        count(automation_id, "goals", goals)
        count(automation_id, "goal_after:40", goals)
    return automation_id


def test_a_difference_that_means_something_is_said_with_its_interval(api: Api, owner: Person) -> None:
    automation_id = compared(api, (50_000, 500_000), (75_000, 500_000))

    for _ in range(2):  # before and after what has been counted is added up
        shown = owner.page(f"automations/{automation_id}/results")
        assert "“fifteen” converts better than “ten”, by 4.9 to 5.1 percentage points. That is hardly chance." in shown
        for said in ("12.5 %", "15.0 %", "14.9 to 15.1 %", "1,000,000"):
            assert said in shown
        counts.fold()


def test_a_small_difference_may_be_chance_and_few_runs_say_nothing(api: Api, owner: Person) -> None:
    small, few = compared(api, (10, 100), (12, 100)), compared(api, (1, 10), (5, 10))

    assert "so it may be chance" in owner.page(f"automations/{small}/results")
    assert "Not enough runs yet to compare" in owner.page(f"automations/{few}/results")


def test_a_goal_is_counted_with_its_arm_and_its_time(api: Api, owner: Person) -> None:
    automation_id = api.published(SPLIT, PAUSE, goal=GOAL)
    contacts = [str(api.contact(external_id=ids.new("x"))["id"]) for _ in range(3)]
    for contact_id in contacts:
        api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    carry_on(api.workspace_id)
    api.sale(contacts[0])
    carry_on(api.workspace_id)

    found: dict[str, Any] = api.get(f"automations/{automation_id}/counts").json["data"]

    assert found["goals"] == found["goal_times"]["known"] == 1
    assert sum(found["steps"]["coupon"]["arm_goals"].values()) == 1
    assert found["goal_times"]["median_seconds"] >= 1
    shown = owner.page(f"automations/{automation_id}/results?period=day")
    assert "33.3 %" in shown


def test_the_file_has_all_tables(api: Api, owner: Person) -> None:
    automation_id = compared(api, (10, 100), (30, 100))
    count(automation_id, "entered", 7, "pause")
    count(automation_id, "failed", 2, "pause")

    lines = owner.get(f"automations/{automation_id}/results?format=csv").text.splitlines()

    assert lines[0] == "of,step,name,runs,goals,low_percent,high_percent,failed,left_without_going_on,timed_out"
    assert "arm,coupon,fifteen,100,30,21.9,39.6,,," in lines
    assert "step,pause,,7,,,,2,5," in lines


def test_a_draft_has_no_results_and_one_without_a_goal_no_conversion(api: Api, owner: Person) -> None:
    draft, without = api.automation(PAUSE)["id"], api.published(PAUSE)

    assert "Nothing has been published yet" in owner.page(f"automations/{draft}/results")
    assert "It has no goal" in owner.page(f"automations/{without}/results?version=9&period=x")
