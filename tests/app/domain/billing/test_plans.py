from __future__ import annotations

from datetime import timedelta

import pytest

from app.database import now
from app.domain.billing import plans
from app.domain.billing.meters import METERS
from app.domain.billing.months import Month
from app.domain.billing.plans import PLANS, Plan
from tests.cast import Api, all_of


@pytest.fixture
def present(one_day: None, empty: None) -> Month:
    return Month.of(now())


def plan_id(api: Api, month: Month) -> str:
    _, [plan] = plans.of(api.workspace_id, month)
    return plan.id


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.id)
def test_every_plan_says_what_it_includes_of_every_meter(plan: Plan) -> None:
    assert list(plan.allowances) == list(METERS)
    assert all(allowance.included >= 0 for allowance in plan.allowances.values())


@pytest.mark.parametrize("plan", PLANS.values(), ids=lambda plan: plan.id)
def test_every_price_is_one(plan: Plan) -> None:
    assert plan.price >= 0
    assert plan.price == round(plan.price, 2)
    assert all(each.beyond is None or each.beyond > 0 for each in plan.allowances.values())
    assert len(plan.currency) == 3


def test_a_workspace_has_the_default_plan_until_it_is_given_one(api: Api, present: Month) -> None:
    assert plan_id(api, present) == plans.DEFAULT == "free"


def test_another_plan_begins_with_the_next_month(api: Api, present: Month) -> None:
    assert plans.change(api.workspace_id, "growth") == present.next

    assert [plan_id(api, month) for month in (present, present.next, present.next.next)] == ["free", "growth", "growth"]


def test_another_plan_may_hold_for_all_of_the_present_month(api: Api, present: Month) -> None:
    assert plans.change(api.workspace_id, "growth", at_once=True) == present

    assert [plan_id(api, month) for month in (present, present.next)] == ["growth", "growth"]


def test_a_month_that_is_over_keeps_its_plan(api: Api, present: Month) -> None:
    month_before = Month.of(present.starts_at - timedelta(days=1))

    plans.change(api.workspace_id, "growth", at_once=True)

    assert plan_id(api, month_before) == "free"


def test_the_last_change_counts_and_forgets_what_was_to_follow(api: Api, present: Month) -> None:
    plans.change(api.workspace_id, "growth")
    plans.change(api.workspace_id, "scale")
    assert [plan_id(api, month) for month in (present, present.next)] == ["free", "scale"]

    plans.change(api.workspace_id, "growth", at_once=True)
    assert [plan_id(api, month) for month in (present, present.next)] == ["growth", "growth"]

    plans.change(api.workspace_id, "growth", at_once=True)
    assert all_of("SELECT plan FROM subscriptions") == ["growth"]


def test_another_workspace_keeps_its_plan(api: Api, others: Api, present: Month) -> None:
    plans.change(api.workspace_id, "growth", at_once=True)

    assert plans.ids_of([api.workspace_id, others.workspace_id], present) == {
        api.workspace_id: "growth",
        others.workspace_id: "free",
    }
