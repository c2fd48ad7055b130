from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import peewee
import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app import database, partitions
from app.lib.json import timestamp
from scheduler.timetable import Pass, Timetable
from tests.cast import KEY, Api, in_threads, one, rung_on, sweep
from tests.requesting import make_request

pytestmark = pytest.mark.usefixtures("empty")


def failing(error: Exception) -> Callable[[], int]:
    def make() -> int:
        raise error

    return make


@pytest.mark.parametrize(
    ("error", "event"),
    [(RuntimeError("broken"), "pass.failed"), (peewee.OperationalError("away"), "pass.interrupted")],
    ids=["broken", "database away"],
)
def test_a_pass_that_fails_does_not_stop_the_others(error: Exception, event: str) -> None:
    made: list[str] = []
    timetable = Timetable()
    timetable.passes = [
        Pass("first", 60, failing(error)),
        Pass("second", 60, lambda: len(made.append("second") or made)),
    ]

    with capture_logs() as lines:
        timetable.run_due()

    assert made == ["second"]
    assert [(line["event"], line["name"]) for line in lines] == [(event, "first"), ("pass.made", "second")]


def test_a_scheduler_that_no_longer_leads_makes_no_further_pass() -> None:
    made: list[str] = []
    timetable = Timetable()
    timetable.passes = [
        Pass("first", 60, failing(peewee.OperationalError("away"))),
        Pass("second", 60, lambda: len(made.append("second") or made)),
    ]
    leads = iter([True, False, True, True])

    timetable.run_due(lambda: next(leads))
    assert made == []

    timetable.run_due(lambda: next(leads))
    assert made == ["second"]


def test_a_pass_that_has_nothing_to_do_rests_until_it_has() -> None:
    made: list[str] = []
    timetable = Timetable()
    condition = "EXISTS (SELECT FROM automation_deltas)"
    timetable.passes = [Pass("busy", 0, lambda: made.append("made") or 1, condition, lambda: made.append("rested"))]

    timetable.run_due()
    assert made == ["rested"]
    assert timetable.passes[0].found == 0

    database.rows(
        "INSERT INTO automation_deltas (id, workspace_id, automation_id, key, amount)"
        " VALUES ('dlt_1', 'ws_1', 'aut_1', 'completed', 1)"
    )
    timetable.run_due()
    assert made == ["rested", "made"]
    assert timetable.passes[0].found == 1


def test_where_it_cannot_be_asked_what_there_is_to_do_every_pass_is_made() -> None:
    made: list[str] = []
    timetable = Timetable()
    timetable.passes = [
        Pass("asks", 60, lambda: made.append("asks") or 0, "EXISTS (SELECT FROM no_table)"),
        Pass("other", 60, lambda: made.append("other") or 0),
    ]

    with capture_logs() as lines:
        timetable.run_due()

    assert made == ["asks", "other"]
    assert [line["event"] for line in lines] == ["passes.not_asked"]


def test_passes_are_timed_and_failures_counted() -> None:
    timetable = Timetable()
    timetable.passes = [Pass("fails", 0, failing(RuntimeError())), Pass("works", 0, lambda: 0)]
    failed, made = "bellhop_scheduler_passes_failed_total", "bellhop_scheduler_pass_duration_seconds_count"
    before = [REGISTRY.get_sample_value(failed, {"name": "fails"}), REGISTRY.get_sample_value(made, {"name": "works"})]

    timetable.run_due()

    assert REGISTRY.get_sample_value(failed, {"name": "fails"}) == (before[0] or 0) + 1
    assert REGISTRY.get_sample_value(made, {"name": "works"}) == (before[1] or 0) + 1
    assert REGISTRY.get_sample_value(failed, {"name": "works"}) is None


def test_a_pass_that_is_not_due_is_not_made() -> None:
    made: list[str] = []
    timetable = Timetable()
    timetable.passes = [Pass("rare", 60, lambda: len(made.append("rare") or made))]

    timetable.run_due()
    timetable.run_due()

    assert made == ["rare"]


def test_a_pass_that_failed_is_made_again_when_it_is_due() -> None:
    calls: list[int] = []

    def make() -> int:
        calls.append(1)
        raise RuntimeError

    timetable = Timetable()
    timetable.passes = [Pass("often", 0, make)]

    timetable.run_due()
    timetable.run_due()

    assert len(calls) == 2


def test_every_pass_runs_on_an_empty_database(one_day: None, patient: None) -> None:
    partitions.make_ahead()  # those of today, where the database was made yesterday
    with capture_logs() as lines:
        Timetable().run_due()

    assert lines == []


def test_every_pass_does_its_work_and_two_leaders_do_it_once(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.contact(email="ada@example.com")
    api.delete(f"webhooks/endpoints/{endpoint_id}", key=KEY)
    api.apply()
    database.rows("UPDATE idempotency_keys SET created_at = now() - interval '25 hours'")

    results = in_threads([Timetable().run_due for _ in range(3)])

    sweep(endpoint_id)

    assert results == [None] * 3
    assert one("SELECT status FROM deliveries") == "cancelled"
    assert one("SELECT count(*) FROM idempotency_keys") == 0
    database.rows("UPDATE endpoints SET updated_at = now() - interval '2 hours'")

    in_threads([Timetable().run_due for _ in range(3)])

    assert one("SELECT count(*) FROM endpoints") == 0


def test_where_no_worker_wakes_what_runs_wait_for_the_scheduler_does(api: Api) -> None:
    _, request_id = make_request(api.workspace_id)
    database.rows("UPDATE runs SET resume_at = now() - interval '1 second'")
    database.rows("UPDATE run_requests SET due_at = NULL, next_attempt_at = now() - interval '1 second'")

    Timetable().run_due()

    assert one("SELECT due_at <= now() AND resume_at IS NULL FROM runs")
    assert one("SELECT due_at <= now() AND next_attempt_at IS NULL FROM run_requests WHERE id = %s", request_id)
    assert rung_on("runs") == rung_on("run-requests") == [api.workspace_id]


def test_the_scheduler_begins_the_runs_of_triggers_by_time(api: Api) -> None:
    contact_id = api.contact(email="ada@example.com")["id"]
    before = {"before": "booking.starts_at", "seconds": 86_400}
    api.published(definition={"triggers": [before], "steps": [{"id": "end", "kind": "stop"}]})
    starts = datetime.now(UTC) + timedelta(hours=2)
    api.booking(contact_id, starts_at=timestamp(starts), ends_at=timestamp(starts + timedelta(hours=1)))

    in_threads([Timetable().run_due for _ in range(3)])
    Timetable().run_due()

    assert one("SELECT count(*) FROM runs") == 1
    assert one("SELECT scanned_to IS NULL FROM timed_triggers")


def test_the_scheduler_begins_the_runs_of_schedules(api: Api) -> None:
    api.contact(email="ada@example.com", tags=["vip"])
    vip = {"field": "contact.tags", "is": "contains", "value": "vip"}
    segment_id = api.done(api.post("segments", {"name": "VIPs", "filter": vip}))["resource"]["id"]
    daily = {"segment_id": segment_id, "every": "day", "at": "09:00"}
    api.published(definition={"triggers": [daily], "steps": [{"id": "end", "kind": "stop"}]})
    database.rows("UPDATE schedules SET next_at = now()")

    in_threads([Timetable().run_due for _ in range(3)])
    Timetable().run_due()

    assert one("SELECT count(*) FROM runs") == 1
