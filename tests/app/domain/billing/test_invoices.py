"""Invoices: one for each workspace and month that costs something, once and to the cent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import peewee
import pytest
from structlog.testing import capture_logs

from app import database
from app.domain.billing import invoices, plans, usage
from app.domain.billing.meters import METERS
from app.models.invoices import Invoice
from tests.billing import (
    BEGIN,
    END,
    FEBRUARY,
    MOMENT,
    SETTLED,
    begin_billing,
    count_until,
    deliver,
    happen,
    plan,
    skip_to,
    use,
)
from tests.cast import all_of, in_threads, one

MARCH, APRIL = FEBRUARY.next, FEBRUARY.next.next


@pytest.fixture(autouse=True)
def plan_for_everybody(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Billing has begun with February, and every workspace has a plan of 10.00 and half a cent for what is beyond 2."""
    monkeypatch.setitem(plans.PLANS, "small", plan())
    monkeypatch.setattr(plans, "DEFAULT", "small")
    begin_billing()


def workspace(name: str = "ws_1", made_at: datetime = BEGIN - timedelta(days=1)) -> str:
    database.rows("INSERT INTO workspaces (id, name, created_at) VALUES (%s, 'Shop', %s)", (name, made_at))
    return name


def close_all() -> None:
    """Closes the months that are over and counted."""
    while database.rows("SELECT 1 FROM billing_periods WHERE closed_at IS NULL AND month < %s", (counted_month(),)):
        invoices.close()


def counted_month() -> Any:
    return one("SELECT date_trunc('month', min(counted_until))::date FROM usage_progress")


def made() -> list[tuple[Any, ...]]:
    """The workspace, the month and the total of every invoice, in the order of their numbers."""
    return [
        (each.workspace_id, f"{each.period_start:%Y-%m}", str(each.total))
        for each in Invoice.select().order_by(Invoice.number)
    ]


def numbers() -> list[int]:
    return all_of("SELECT number FROM invoices ORDER BY number")


# When


def test_a_month_is_closed_when_it_is_over_and_all_of_it_is_counted() -> None:
    workspace()
    skip_to(END - timedelta(minutes=1))
    usage.count_up(END + SETTLED - MOMENT)
    assert invoices.close() == 0
    assert one("SELECT closed_at FROM billing_periods") is None

    usage.count_up(END + SETTLED)

    assert invoices.close() == 1
    assert made() == [("ws_1", "2028-02", "10.00")]
    assert all_of("SELECT month FROM billing_periods WHERE closed_at IS NULL") == [MARCH.first]


def test_nothing_is_closed_before_billing_began() -> None:
    database.rows("DELETE FROM billing_periods")
    workspace()

    assert invoices.close() == 0


def test_closing_without_a_workspace_makes_none_and_goes_on() -> None:
    skip_to(MARCH.ends_at)

    close_all()

    assert made() == []
    assert all_of("SELECT month FROM billing_periods WHERE closed_at IS NULL") == [APRIL.first]


def test_a_scheduler_that_was_away_for_two_months_closes_both_the_older_first() -> None:
    workspace()
    use("ws_1", FEBRUARY, deliveries=102)
    use("ws_1", MARCH, deliveries=202)
    skip_to(MARCH.ends_at)

    assert [invoices.close() for _ in range(3)] == [1, 1, 0]

    assert made() == [("ws_1", "2028-02", "10.50"), ("ws_1", "2028-03", "11.00")]
    assert all_of("SELECT id FROM invoices ORDER BY id") == all_of("SELECT id FROM invoices ORDER BY number")


# What


def test_an_invoice_has_the_plan_and_what_is_beyond_it_to_the_cent() -> None:
    workspace()
    use("ws_1", FEBRUARY, active_contacts=3, deliveries=5)
    use("ws_1", MARCH, deliveries=1000)
    skip_to(END)

    close_all()

    [invoice] = Invoice.select()
    assert invoice.id.startswith("inv_")
    assert (invoice.status, invoice.plan, invoice.currency) == ("open", "small", "EUR")
    assert (invoice.period_start, invoice.period_end) == (BEGIN, END)
    assert [(line["meter"], line["quantity"], line["amount"]) for line in invoice.lines] == [
        (None, 1, "10.00"),
        ("active_contacts", 1, "0.01"),
        ("messages", 0, "0.00"),
        ("runs", 0, "0.00"),
        ("deliveries", 3, "0.02"),
    ]
    assert str(invoice.total) == "10.03"


def test_what_was_done_is_what_is_owed_also_for_contacts_that_are_gone() -> None:
    workspace()
    deliver("ws_1", BEGIN, BEGIN + MOMENT, BEGIN + MOMENT)
    happen("ws_1", "con_ada", BEGIN)
    happen("ws_1", "con_ada", BEGIN + MOMENT, kind="contact.deleted")
    count_until(BEGIN + timedelta(hours=1))
    skip_to(END)

    close_all()

    used = {line["meter"]: line["used"] for line in Invoice.get().lines}
    assert used == {None: None, "active_contacts": 1, "messages": 0, "runs": 0, "deliveries": 3}
    assert made() == [("ws_1", "2028-02", "10.01")]


def test_the_days_of_a_month_add_up_to_it_alone() -> None:
    workspace()
    for day in ("2028-01-31", "2028-02-01", "2028-02-29", "2028-03-01"):
        database.rows("INSERT INTO usage_days VALUES ('ws_1', %s, 'deliveries', 1000)", (day,))
    skip_to(END)

    close_all()

    assert Invoice.get().lines[-1]["used"] == 2000


def test_the_first_month_of_a_workspace_costs_its_days() -> None:
    workspace("ws_1", made_at=BEGIN.replace(day=15))
    workspace("ws_2", made_at=END - MOMENT)
    workspace("ws_3", made_at=END)
    skip_to(MARCH.ends_at)

    close_all()

    assert made() == [
        ("ws_1", "2028-02", "5.17"),
        ("ws_2", "2028-02", "0.34"),
        ("ws_1", "2028-03", "10.00"),
        ("ws_2", "2028-03", "10.00"),
        ("ws_3", "2028-03", "10.00"),
    ]


def test_a_workspace_that_owes_nothing_gets_no_invoice_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plans.PLANS, "nothing", plan("0.00", beyond=None))
    for name in ("ws_1", "ws_2", "ws_3"):
        workspace(name)
        use(name, FEBRUARY, deliveries=1_000_000)
    database.rows("INSERT INTO subscriptions VALUES ('ws_2', '2028-02-01', 'nothing')")
    skip_to(END)

    close_all()

    assert [workspace_id for workspace_id, _, _ in made()] == ["ws_1", "ws_3"]
    assert numbers() == [1, 2]


def test_a_month_is_charged_by_the_plan_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plans.PLANS, "large", plan("99.00"))
    workspace()
    database.rows("INSERT INTO subscriptions VALUES ('ws_1', '2028-03-01', 'large')")
    skip_to(MARCH.ends_at)

    close_all()

    assert made() == [("ws_1", "2028-02", "10.00"), ("ws_1", "2028-03", "99.00")]


def test_the_default_plan_costs_nothing_and_makes_no_invoice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    workspace()
    use("ws_1", FEBRUARY, **dict.fromkeys(METERS, 1_000_000))
    skip_to(END)

    close_all()

    assert made() == []


def test_what_was_closed_is_not_changed_by_what_is_counted_later() -> None:
    workspace()
    skip_to(END)
    close_all()
    use("ws_1", FEBRUARY, deliveries=1_000_000)

    close_all()
    invoices.close()

    assert made() == [("ws_1", "2028-02", "10.00")]


# Once


def test_batches_have_every_workspace_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoices, "BATCH", 3)
    names = [workspace(f"ws_{number:02}") for number in range(9)]
    skip_to(END)

    assert [invoices.close() for _ in range(5)] == [3, 3, 3, 0, 0]

    assert made() == [(name, "2028-02", "10.00") for name in names]
    assert numbers() == list(range(1, 10))
    assert all_of("SELECT month FROM billing_periods WHERE closed_at IS NULL") == [MARCH.first]


def test_schedulers_that_close_at_once_make_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoices, "BATCH", 3)
    names = [workspace(f"ws_{number:02}") for number in range(20)]
    skip_to(MARCH.ends_at)

    results = in_threads([close_all] * 4)

    assert results == [None] * 4
    assert made() == [(name, month, "10.00") for month in ("2028-02", "2028-03") for name in names]
    assert numbers() == list(range(1, 41))


@pytest.mark.parametrize("step", ["_make", "_move_on"])
def test_a_scheduler_that_dies_in_a_batch_has_made_none_of_it(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(invoices, "BATCH", 2)
    names = [workspace(f"ws_{number}") for number in range(5)]
    skip_to(END)
    invoices.close()
    real = getattr(invoices, step)

    def die_after(*parameters: Any) -> None:
        real(*parameters)
        raise RuntimeError("dead")

    with monkeypatch.context() as patch:
        patch.setattr(invoices, step, die_after)
        with pytest.raises(RuntimeError):
            invoices.close()
    assert len(made()) == 2

    close_all()

    assert made() == [(name, "2028-02", "10.00") for name in names]
    assert numbers() == [1, 2, 3, 4, 5]


def test_a_month_that_is_closed_again_gets_only_what_it_lacks() -> None:
    for name in ("ws_1", "ws_2", "ws_3"):
        workspace(name)
    skip_to(END)
    close_all()
    database.rows("DELETE FROM invoices WHERE workspace_id = 'ws_2'")
    database.rows("UPDATE billing_periods SET closed_at = NULL WHERE month = '2028-02-01'")

    close_all()

    assert [workspace_id for workspace_id, _, _ in made()] == ["ws_1", "ws_3", "ws_2"]


def test_the_database_takes_no_second_invoice_for_a_month() -> None:
    workspace()
    skip_to(END)
    close_all()

    with pytest.raises(peewee.IntegrityError, match="invoices_workspace_id_period_start_key"):
        database.rows(
            "INSERT INTO invoices SELECT 'inv_2', workspace_id, 2, status, plan, currency, period_start, period_end,"
            " lines, total FROM invoices"
        )


# Without a plan


def withdraw_plan(workspace_id: str) -> None:
    """As if the workspace had a plan that was taken out of plans.toml."""
    database.rows("INSERT INTO subscriptions VALUES (%s, '2028-02-01', 'withdrawn')", (workspace_id,))


def test_a_plan_that_is_not_known_is_told_of_and_keeps_no_other_workspace_from_its_invoices() -> None:
    for name in ("ws_1", "ws_2", "ws_3"):
        workspace(name)
    withdraw_plan("ws_2")
    skip_to(MARCH.ends_at)

    with capture_logs() as lines:
        close_all()

    assert made() == [(name, month, "10.00") for month in ("2028-02", "2028-03") for name in ("ws_1", "ws_3")]
    assert numbers() == [1, 2, 3, 4]
    assert {(line["event"], line["log_level"], *line["plans"]) for line in lines} == {
        ("invoices.plan_unknown", "error", "withdrawn")
    }


def test_months_without_a_known_plan_are_made_up_for_once_it_is_known_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ws_1", "ws_2"):
        workspace(name)
    withdraw_plan("ws_2")
    use("ws_2", FEBRUARY, deliveries=102)
    skip_to(MARCH.ends_at)
    close_all()
    assert invoices.close() == 0
    monkeypatch.setitem(plans.PLANS, "withdrawn", plan("20.00"))

    assert [invoices.close() for _ in range(2)] == [2, 0]

    assert made()[2:] == [("ws_2", "2028-02", "20.50"), ("ws_2", "2028-03", "20.00")]
    assert numbers() == [1, 2, 3, 4]


def test_schedulers_that_make_up_for_a_month_at_once_do_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace()
    withdraw_plan("ws_1")
    skip_to(END)
    close_all()
    monkeypatch.setitem(plans.PLANS, "withdrawn", plan("20.00"))

    results = in_threads([invoices.close] * 4)

    assert sorted(results) == [0, 0, 0, 1]
    assert made() == [("ws_1", "2028-02", "20.00")]
