"""Usage: everything counted, once, to the millisecond, whatever becomes of schedulers, rows and contacts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from app import database, partitions
from app.domain.billing import meters, usage
from app.domain.billing.meters import METERS, Rows
from app.domain.billing.months import Month
from app.domain.retention import delete_old
from app.lib import ids
from tests.billing import (
    BEGIN,
    END,
    FEBRUARY,
    MOMENT,
    SETTLED,
    begin_billing,
    begin_runs,
    count_until,
    deliver,
    happen,
    queue_messages,
    send_messages,
    skip_to,
)
from tests.cast import Api, all_of, in_threads
from tests.growth import blocks_read

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
NOTHING = {"active_contacts": 0, "messages": 0, "runs": 0, "deliveries": 0}
ADA, EVE, BOB = "con_ada", "con_eve", "con_bob"


@pytest.fixture
def workspace_id(api: Api) -> str:
    begin_billing()
    return api.workspace_id


def in_february(workspace_id: str) -> dict[str, int]:
    return usage.of(workspace_id, FEBRUARY)


def counted() -> list[Any]:
    return database.rows("SELECT workspace_id, day::text, meter, amount FROM usage_days ORDER BY meter, day")


# What is counted


def test_a_workspace_that_did_nothing_used_nothing(workspace_id: str) -> None:
    assert in_february(workspace_id) == NOTHING

    count_until(END)

    assert in_february(workspace_id) == NOTHING
    assert counted() == []


@pytest.mark.parametrize("until", [BEGIN, BEGIN + HOUR, END - MOMENT, END, END + HOUR], ids=str)
def test_a_month_has_what_was_made_from_its_first_millisecond_to_its_last(workspace_id: str, until: datetime) -> None:
    moments = [BEGIN - MOMENT, BEGIN, END - MOMENT, END]
    deliver(workspace_id, *moments)
    send_messages(workspace_id, *moments)
    for at, contact_id in zip(moments, "abcd", strict=True):
        happen(workspace_id, contact_id, at)

    count_until(until)

    assert in_february(workspace_id) == NOTHING | {"deliveries": 2, "messages": 2, "active_contacts": 2}


@pytest.mark.parametrize("until", [BEGIN, END], ids=str)
def test_runs_are_counted_however_they_ended_but_not_starts_that_were_refused(
    workspace_id: str, until: datetime
) -> None:
    begin_runs(workspace_id, BEGIN - MOMENT, BEGIN, END - MOMENT)
    begin_runs(workspace_id, BEGIN, status="cancelled", reason="request")
    begin_runs(workspace_id, BEGIN, END - MOMENT, status="cancelled", reason="reentry")

    count_until(until)

    assert in_february(workspace_id) == NOTHING | {"runs": 3}


def test_of_another_workspace_nothing_is_counted(workspace_id: str, others: Api) -> None:
    deliver(workspace_id, BEGIN)
    happen(workspace_id, ADA, BEGIN)
    deliver(others.workspace_id, BEGIN, BEGIN)
    send_messages(others.workspace_id, BEGIN)

    for _ in ("by the query", "by the scheduler"):
        assert in_february(workspace_id) == NOTHING | {"deliveries": 1, "active_contacts": 1}
        assert in_february(others.workspace_id) == NOTHING | {"deliveries": 2, "messages": 1}
        count_until(BEGIN + HOUR)


def test_what_happens_through_the_api_is_used_at_once(one_day: None, api: Api) -> None:
    api.endpoint()
    ada = api.contact(email="ada@example.com", tags=["vip"])
    api.contact(email="ada@example.com")  # changes nothing

    used = usage.of(api.workspace_id, Month.of(database.now()))

    assert used == NOTHING | {"active_contacts": 1, "deliveries": 2}
    api.done(api.delete(f"contacts/{ada['id']}"))
    assert usage.of(api.workspace_id, Month.of(database.now())) == used | {"deliveries": 3}


# Messages


def sent_now(workspace_id: str) -> int:
    return usage.of(workspace_id, Month.of(database.now()))["messages"]


def become(message_ids: list[str], *statuses: str) -> None:
    for status in statuses:
        database.rows("UPDATE messages SET status = %s WHERE id = ANY(%s)", (status, message_ids))


@pytest.mark.parametrize(
    "statuses",
    [
        ["sending", "sent", "delivered", "read"],
        ["sending", "unknown", "delivered"],
        ["sent", "failed"],
        ["sent", "failed", "queued", "sending", "sent"],
        ["failed", "queued", "sent"],
    ],
    ids=" ".join,
)
def test_a_message_is_counted_once_when_it_is_sent(one_day: None, api: Api, statuses: list[str]) -> None:
    messages = queue_messages(api.workspace_id, 3)
    assert sent_now(api.workspace_id) == 0

    become(messages, *statuses)

    assert sent_now(api.workspace_id) == 3


@pytest.mark.parametrize("statuses", [["sending", "unknown"], ["sending", "failed"], []], ids=" ".join)
def test_a_message_that_was_not_sent_is_not_counted(one_day: None, api: Api, statuses: list[str]) -> None:
    become(queue_messages(api.workspace_id), *statuses)

    assert sent_now(api.workspace_id) == 0


def test_what_comes_in_or_was_sent_without_bellhop_is_not_counted(one_day: None, api: Api) -> None:
    become(queue_messages(api.workspace_id, author="provider"), "sent", "read")
    become(queue_messages(api.workspace_id), "sent")
    received = "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, status, author)"
    database.rows(f"{received} VALUES ('msg_1', %s, 'cnv_1', 'con_1', 'in', 'received', '{{}}')", (api.workspace_id,))

    assert sent_now(api.workspace_id) == 1


def test_a_message_that_was_counted_is_not_counted_when_it_is_read(workspace_id: str) -> None:
    send_messages(workspace_id, BEGIN)
    count_until(BEGIN + HOUR)

    become(all_of("SELECT id FROM messages"), "delivered", "read")

    assert in_february(workspace_id)["messages"] == 1


# Contacts


def test_a_contact_is_active_once_in_a_month_and_again_in_the_next(workspace_id: str) -> None:
    happen(workspace_id, ADA, BEGIN, BEGIN + MOMENT, BEGIN + 2 * HOUR, END, END + HOUR)
    happen(workspace_id, EVE, BEGIN + 2 * HOUR)

    count_until(BEGIN + 3 * HOUR)
    assert in_february(workspace_id)["active_contacts"] == 2
    skip_to(END)
    count_until(END + 2 * HOUR)

    assert counted() == [
        (workspace_id, "2028-02-01", "active_contacts", 2),
        (workspace_id, "2028-03-01", "active_contacts", 1),
    ]


def test_a_contact_that_is_counted_is_not_counted_when_it_is_active_again(workspace_id: str) -> None:
    happen(workspace_id, ADA, BEGIN, BEGIN + HOUR)
    count_until(BEGIN + HOUR)
    happen(workspace_id, EVE, BEGIN + HOUR)

    assert in_february(workspace_id)["active_contacts"] == 2


def test_a_deletion_is_no_activity_and_takes_none_away(workspace_id: str) -> None:
    happen(workspace_id, ADA, BEGIN)
    happen(workspace_id, ADA, BEGIN + MOMENT, kind="contact.deleted")
    happen(workspace_id, EVE, BEGIN, kind="contact.deleted")
    happen(workspace_id, BOB, BEGIN + HOUR, kind="contact.deleted")

    for _ in ("by the query", "by the scheduler"):
        assert in_february(workspace_id)["active_contacts"] == 1
        count_until(BEGIN + 2 * HOUR)


def test_of_an_erased_contact_only_its_number_and_its_identifier_are_kept_and_that_for_the_month(
    one_day: None, api: Api
) -> None:
    usage.count_up()  # billing begins with this month, also where the next one is near
    contact = api.contact(email="ada@example.com", first_name="Ada")
    count_until(database.now())
    api.done(api.delete(f"contacts/{contact['id']}"))

    assert usage.of(api.workspace_id, Month.of(database.now()))["active_contacts"] == 1
    assert all_of("SELECT contact_id FROM active_contacts") == [contact["id"]]


def test_which_contacts_were_counted_is_forgotten_when_their_month_is_over(workspace_id: str) -> None:
    for contact_id in (ADA, EVE, BOB):
        happen(workspace_id, contact_id, BEGIN, END)
    count_until(BEGIN + HOUR)
    skip_to(END - MOMENT)

    assert delete_old("contacts_counted") == 0

    count_until(END + HOUR)
    assert [delete_old("contacts_counted", 2) for _ in range(3)] == [2, 1, 0]
    assert all_of("SELECT DISTINCT month::text FROM active_contacts") == ["2028-03-01"]
    assert in_february(workspace_id)["active_contacts"] == 3


# Once


def test_what_may_not_be_there_yet_is_left_for_later(workspace_id: str) -> None:
    deliver(workspace_id, BEGIN, BEGIN + 2 * MOMENT)

    usage.count_up(BEGIN + SETTLED + MOMENT)
    assert counted() == [(workspace_id, "2028-02-01", "deliveries", 1)]
    deliver(workspace_id, BEGIN + MOMENT)  # that its transaction has ended only now
    assert in_february(workspace_id)["deliveries"] == 3
    usage.count_up(BEGIN + SETTLED + HOUR)

    assert counted() == [(workspace_id, "2028-02-01", "deliveries", 3)]


def test_counting_again_changes_nothing(workspace_id: str) -> None:
    deliver(workspace_id, BEGIN, BEGIN + HOUR)
    happen(workspace_id, ADA, BEGIN)
    assert usage.count_up(BEGIN + 2 * HOUR) == 3
    before = counted()

    assert usage.count_up(BEGIN + 2 * HOUR) == 0
    assert usage.count_up(BEGIN + HOUR) == 0

    assert counted() == before


def test_schedulers_that_count_at_once_count_once(workspace_id: str) -> None:
    for hour in range(24):
        deliver(workspace_id, BEGIN + hour * HOUR, BEGIN + (hour + 1) * HOUR - MOMENT)
        happen(workspace_id, ADA, BEGIN + hour * HOUR)

    results = in_threads([lambda: count_until(BEGIN + DAY)] * 4)

    assert results == [None] * 4
    assert [row[2:] for row in counted()] == [("active_contacts", 1), ("deliveries", 48)]


def test_a_scheduler_that_dies_in_a_slice_has_counted_nothing_of_it(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(workspace_id, BEGIN)

    def die_after(meter: Rows, *parameters: Any) -> int:
        add_to_day(meter, *parameters)
        raise RuntimeError("dead")

    add_to_day = Rows.add_to_day
    with monkeypatch.context() as patch:
        patch.setattr(Rows, "add_to_day", die_after)
        with pytest.raises(RuntimeError):
            usage.count_up(BEGIN + HOUR)
    assert counted() == []

    count_until(BEGIN + HOUR)

    assert counted() == [(workspace_id, "2028-02-01", "deliveries", 1)]


def test_what_is_counted_while_somebody_looks_is_seen_once(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver(workspace_id, BEGIN, BEGIN + HOUR)
    happen(workspace_id, ADA, BEGIN)
    real = usage.totals

    def totals_then_count(*parameters: Any) -> Any:
        found = real(*parameters)
        in_threads([lambda: count_until(BEGIN + 2 * HOUR)])
        return found

    monkeypatch.setattr(usage, "totals", totals_then_count)

    assert in_february(workspace_id) == NOTHING | {"deliveries": 2, "active_contacts": 1}
    assert [row[2:] for row in counted()] == [("active_contacts", 1), ("deliveries", 2)]


# Behind


def test_a_scheduler_that_was_away_for_two_months_counts_them_in_turns(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [BEGIN, BEGIN + 10 * DAY, BEGIN + 10 * DAY + HOUR, END - MOMENT, END, END + 30 * DAY]
    deliver(workspace_id, *moments)
    monkeypatch.setattr(usage, "SLICE_SECONDS", 0)
    usage.count_up(END + 31 * DAY)
    assert all_of("SELECT DISTINCT counted_until - %s FROM usage_progress", BEGIN) == [HOUR]
    monkeypatch.undo()

    count_until(END + 31 * DAY)

    assert [row[1:] for row in counted()] == [
        ("2028-02-01", "deliveries", 1),
        ("2028-02-11", "deliveries", 2),
        ("2028-02-29", "deliveries", 1),
        ("2028-03-01", "deliveries", 1),
        ("2028-03-31", "deliveries", 1),
    ]


def test_what_is_not_counted_yet_is_seen_all_the_same(workspace_id: str) -> None:
    deliver(workspace_id, BEGIN, BEGIN + 20 * DAY, END - MOMENT)
    count_until(BEGIN + HOUR)

    assert in_february(workspace_id)["deliveries"] == 3


def test_counting_begins_with_the_present_month(api: Api) -> None:
    deliver(api.workspace_id, BEGIN - MOMENT, BEGIN)

    usage.count_up(BEGIN + HOUR)

    assert counted() == [(api.workspace_id, "2028-02-01", "deliveries", 1)]
    assert all_of("SELECT month::text FROM billing_periods") == ["2028-02-01"]


def test_a_meter_that_is_new_begins_with_the_month_that_is_not_closed(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(workspace_id, BEGIN)
    monkeypatch.setitem(METERS, "messages", Rows("deliveries", "dlv"))
    database.rows("DELETE FROM usage_progress WHERE meter = 'messages'")

    usage.count_up(BEGIN + HOUR)

    assert in_february(workspace_id) == NOTHING | {"messages": 1, "deliveries": 1}


# What is too old


def test_a_month_is_counted_when_all_its_meters_are(workspace_id: str) -> None:
    skip_to(END)
    assert usage.is_counted(FEBRUARY) is True
    assert usage.is_counted(FEBRUARY.next) is False

    database.rows("UPDATE usage_progress SET counted_until = %s WHERE meter = 'deliveries'", (END - MOMENT,))
    assert usage.is_counted(FEBRUARY) is False

    database.rows("DELETE FROM usage_progress WHERE meter = 'deliveries'")
    assert usage.is_counted(FEBRUARY) is False


def test_what_is_not_counted_is_not_dropped_and_what_is_dropped_stays_counted(workspace_id: str, patient: None) -> None:
    deliver(workspace_id, BEGIN, BEGIN + HOUR)
    happen(workspace_id, ADA, BEGIN + HOUR)
    years_later = END + 1000 * DAY
    count_until(BEGIN + HOUR)

    partitions.drop_expired(years_later)
    try:
        assert len(all_of("SELECT id FROM deliveries")) == len(all_of("SELECT id FROM events")) == 1
        assert in_february(workspace_id) == NOTHING | {"deliveries": 2, "active_contacts": 1}

        count_until(BEGIN + 2 * HOUR)
        partitions.drop_expired(years_later)
    finally:
        partitions.make_ahead()

    assert all_of("SELECT id FROM deliveries") == all_of("SELECT id FROM events") == []
    assert in_february(workspace_id) == NOTHING | {"deliveries": 2, "active_contacts": 1}


def test_what_keeps_a_partition_is_the_meter_that_counts_its_table() -> None:
    kept_for = {each.meter: each.table for each in partitions.TABLES if each.meter}

    assert kept_for["deliveries"] == METERS["deliveries"].table
    assert kept_for["active_contacts"] == "events"
    assert kept_for.keys() <= METERS.keys()


# What it costs

MANY = 50_000


@pytest.fixture
def busy(workspace_id: str, others: Api, no_autovacuum: None) -> str:
    """A workspace with as many deliveries and events in February as all others; most of them are counted."""
    for made_by in (workspace_id, others.workspace_id):
        database.rows(
            """
            INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at)
            SELECT left(%s, -16) || lpad(number::text, 16, '0'), %s, 'evt_1', 'whe_1', 'tag.added', 'delivered', NULL
            FROM generate_series(%s, %s) AS number
            """,
            (ids.bound("dlv", BEGIN), made_by, *numbers(made_by == workspace_id)),
        )
        database.rows(
            """
            INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)
            SELECT left(%s, -16) || lpad(number::text, 16, '0'), %s, 'tag.added', 'con_' || number %% 5000, '', '{}',
                now()
            FROM generate_series(%s, %s) AS number
            """,
            (ids.bound("evt", BEGIN), made_by, *numbers(made_by == workspace_id)),
        )
    database.rows(
        """
        INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, status, author, sent_at)
        SELECT 'msg_' || number, %s, 'cnv_1', 'con_1', 'in', 'received', '{}', %s
        FROM generate_series(1, 10000) AS number
        """,
        (workspace_id, BEGIN - DAY),
    )
    count_until(BEGIN + HOUR)
    deliver(workspace_id, *[BEGIN + HOUR + number * MOMENT for number in range(50)])
    happen(workspace_id, ADA, *[BEGIN + HOUR + number * MOMENT for number in range(50)])
    database.rows("VACUUM ANALYZE deliveries, events, messages, usage_days, active_contacts")
    return workspace_id


def numbers(is_first: bool) -> tuple[int, int]:
    return (1, MANY) if is_first else (MANY + 1, 2 * MANY)


def test_whoever_looks_reads_only_what_is_not_counted(busy: str) -> None:
    assert in_february(busy) == NOTHING | {"deliveries": MANY + 50, "active_contacts": 5001}
    before = blocks_read("deliveries") + blocks_read("events")

    in_february(busy)

    assert 0 < blocks_read("deliveries") + blocks_read("events") - before < 150


def test_the_scheduler_reads_only_what_it_did_not_count(busy: str) -> None:
    before = blocks_read("deliveries") + blocks_read("events")

    count_until(BEGIN + 2 * HOUR)

    assert 0 < blocks_read("deliveries") + blocks_read("events") - before < 150
    assert in_february(busy) == NOTHING | {"deliveries": MANY + 50, "active_contacts": 5001}


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The plans of what meters ask for from now on."""
    plans: list[dict[str, Any]] = []

    def explaining(run: Callable[..., Any]) -> Callable[..., Any]:
        def explain(statement: str, parameters: Any) -> Any:
            [(plan,)] = database.rows(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
            plans.append(plan[0]["Plan"])
            return run(statement, parameters)

        return explain

    for name in ("rows", "count"):
        monkeypatch.setattr(meters, name, explaining(getattr(meters, name)))
    return plans


def scans(node: dict[str, Any]) -> list[str]:
    own = (
        [node["Node Type"]]
        if node.get("Relation Name", "").startswith(("deliveries", "events", "runs", "messages"))
        else []
    )
    return own + [found for below in node.get("Plans", ()) for found in scans(below)]


def test_no_table_is_read_from_end_to_end(busy: str, explained: list[dict[str, Any]]) -> None:
    in_february(busy)
    count_until(BEGIN + 2 * HOUR)

    assert len(explained) == 8
    for plan in explained:
        assert scans(plan)
        assert "Seq Scan" not in scans(plan)
