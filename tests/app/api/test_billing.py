from __future__ import annotations

import pytest

from app import database
from app.domain.billing import plans, usage
from app.domain.billing.months import Month
from app.lib import clock
from tests.billing import count_until, plan
from tests.cast import Api, all_of

UNUSED = {"used": 0, "included": 2, "unit_price": "0.005", "amount": "0.00"}


pytestmark = pytest.mark.usefixtures("one_day")


@pytest.fixture
def small(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """A workspace, as old as the month, with a plan of 10.00 and half a cent for what is beyond 2.

    Billing has begun, also where the next month is near.
    """
    monkeypatch.setitem(plans.PLANS, "small", plan())
    plans.change(api.workspace_id, "small", at_once=True)
    database.rows("UPDATE workspaces SET created_at = date_trunc('month', now())")
    usage.count_up()
    return api


def test_a_new_workspace_has_the_free_plan_and_used_nothing(api: Api) -> None:
    shown = api.get("billing").json

    month = Month.of(database.now())
    assert list(shown) == ["data"]
    assert shown["data"] == {
        "plan": {"id": "free", "name": "Free", "price": "0.00", "currency": "EUR"},
        "next_plan": None,
        "period": {
            "start": f"{month.first}T00:00:00.000Z",
            "end": f"{month.next.first}T00:00:00.000Z",
        },
        "usage": {
            "active_contacts": {"used": 0, "included": 1000, "unit_price": None, "amount": "0.00"},
            "messages": {"used": 0, "included": 1000, "unit_price": None, "amount": "0.00"},
            "runs": {"used": 0, "included": 1000, "unit_price": None, "amount": "0.00"},
            "deliveries": {"used": 0, "included": 10_000, "unit_price": None, "amount": "0.00"},
        },
        "total": "0.00",
    }


def test_what_was_used_is_shown_with_what_it_costs(small: Api) -> None:
    small.endpoint()
    for number in range(5):
        small.contact(external_id=f"customer-{number}")

    for _ in ("before it is counted", "and after"):
        shown = small.get("billing").json["data"]
        assert shown["usage"] == {
            "active_contacts": UNUSED | {"used": 5, "amount": "0.02"},
            "messages": UNUSED,
            "runs": UNUSED,
            "deliveries": UNUSED | {"used": 5, "amount": "0.02"},
        }
        assert shown["total"] == "10.04"
        count_until(database.now())
    assert all_of("SELECT amount FROM usage_days") == [5, 5]


def test_the_use_of_another_workspace_is_not_shown(small: Api, others: Api) -> None:
    others.endpoint()
    others.contact(external_id="one")

    assert {each["used"] for each in small.get("billing").json["data"]["usage"].values()} == {0}


def test_a_new_month_begins_with_nothing_used(small: Api) -> None:
    small.contact(external_id="one")
    count_until(database.now())
    following = Month.of(database.now()).next

    with clock.moved_by(seconds=(following.starts_at - clock.now()).total_seconds()):
        shown = small.get("billing").json["data"]

    assert shown["period"]["start"] == f"{following.first}T00:00:00.000Z"
    assert shown["usage"]["active_contacts"] == UNUSED


def test_more_than_is_included_is_shown_and_not_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plans.PLANS, "free", plan("0.00", beyond=None, included=1))

    for number in range(3):
        api.contact(external_id=f"customer-{number}")

    shown = api.get("billing").json["data"]
    assert shown["usage"]["active_contacts"] == {"used": 3, "included": 1, "unit_price": None, "amount": "0.00"}
    assert shown["total"] == "0.00"


def test_a_plan_that_was_removed_is_a_problem(small: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(plans.PLANS, "small")

    answer = small.get("billing")

    assert (answer.status_code, answer.json["type"].rpartition("/")[2]) == (503, "unavailable")
    assert "plan" in answer.json["detail"]
