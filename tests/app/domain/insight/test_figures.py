"""Figures: everything recorded counts once, in its minute and hour, whenever it commits and whoever counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from app import database
from app.domain.insight import figures
from app.domain.retention import delete_old
from app.models.endpoints import Endpoint
from tests import sending
from tests.cast import Api, all_of, elsewhere, in_threads, one
from tests.figures import ago, attempted, counted, failed_job, failed_run
from tests.sending import BROKEN, GONE, OK

Happen = Callable[[int], None]
pytestmark = pytest.mark.usefixtures("without_lag")


def minutes(workspace_id: str = "", endpoint_id: str = "") -> list[tuple[int, int, int, int]]:
    """Attempts, delivered, final and duration, of every minute, oldest first."""
    return database.rows(
        "SELECT attempts, delivered, final, duration_ms FROM delivery_minutes"
        " WHERE workspace_id = %s AND endpoint_id = %s ORDER BY starts_at",
        (workspace_id, endpoint_id),
    )


def groups() -> list[tuple[str, str, str, int]]:
    return database.rows("SELECT kind, subject, code, status FROM failure_groups ORDER BY kind, subject, code, status")


def test_an_attempt_counts_for_its_endpoint_its_workspace_and_all(endpoint: Endpoint, happen: Happen) -> None:
    happen(3)
    sending.attempt(endpoint, OK)

    counted()

    of_all = [minutes(), minutes(endpoint.workspace_id), minutes(endpoint.workspace_id, endpoint.id)]
    assert [[sum(column) for column in zip(*each, strict=True)] for each in of_all] == [[3, 3, 0, 36]] * 3
    assert groups() == []


def test_a_failure_counts_in_its_group_and_is_final_if_its_delivery_failed(
    endpoint: Endpoint, happen: Happen, without_probing: None
) -> None:
    happen(2)
    sending.attempt(endpoint, BROKEN)
    sending.attempt(endpoint, GONE)

    counted()

    assert groups() == [("delivery", endpoint.id, "gone", 410), ("delivery", endpoint.id, "status", 500)]
    sums = (
        "SELECT sum(failed), sum(final) FROM failure_{} JOIN failure_groups ON id = group_id GROUP BY code ORDER BY 1"
    )
    assert database.rows(sums.format("minutes")) == database.rows(sums.format("hours"))
    assert one("SELECT sum(failed) FROM failure_minutes") == 4
    assert one("SELECT sum(final) FROM failure_minutes") == one("SELECT sum(final) FROM delivery_minutes") / 3 == 2


def test_counting_again_or_side_by_side_changes_nothing(endpoint: Endpoint, happen: Happen) -> None:
    happen(2)
    sending.attempt(endpoint, BROKEN)

    assert in_threads([counted] * 4) == [None] * 4
    counted()

    assert sum(attempts for attempts, *_ in minutes()) == 2
    assert one("SELECT sum(failed) FROM failure_minutes") == 2


def test_an_attempt_that_is_committed_late_is_not_missed(api: Api) -> None:
    with elsewhere(lambda: attempted(api.workspace_id, "whe_late", database.now())):
        attempted(api.workspace_id, "whe_later", database.now())
        for _ in range(5):
            figures.count_outcomes()
        assert minutes(api.workspace_id, "whe_late") == minutes(api.workspace_id, "whe_later") == []

    counted()

    assert minutes(api.workspace_id, "whe_late") == minutes(api.workspace_id, "whe_later") == [(1, 1, 0, 20)]


def test_minutes_and_hours_begin_at_full_ones(api: Api) -> None:
    attempted(api.workspace_id, "whe_1", ago(hours=3), times=2)
    attempted(api.workspace_id, "whe_1", ago(hours=2), "timeout", None)

    counted()

    for table, grain in (("delivery_minutes", "minute"), ("delivery_hours", "hour")):
        found = database.rows(
            f"SELECT starts_at, attempts - delivered, final FROM {table} WHERE endpoint_id = 'whe_1' ORDER BY starts_at"
        )
        assert [numbers for _, *numbers in found] == [[0, 0], [1, 1]]
        starts = [starts_at for starts_at, *_ in found]
        assert starts == all_of(f"SELECT date_trunc('{grain}', at) FROM unnest(%s::timestamptz[]) AS at", starts)


def test_durations_are_counted_in_buckets(api: Api) -> None:
    for duration_ms in (0, 9, 10, 59_999, 60_000, 90_000):
        attempted(api.workspace_id, "whe_1", ago(minutes=5), duration_ms=duration_ms)

    counted()
    counted()

    [of_all] = all_of("SELECT DISTINCT buckets FROM delivery_minutes")
    assert of_all == [2, 1, *[0] * 9, 1, 2]
    assert len(of_all) == len(figures.BOUNDS_MS) + 1


def test_only_answers_are_in_the_buckets(api: Api) -> None:
    attempted(api.workspace_id, "whe_1", ago(minutes=5), "status", 500, duration_ms=20)
    attempted(api.workspace_id, "whe_1", ago(minutes=5), "timeout", None, duration_ms=15_000, times=3)

    counted()

    assert all_of("SELECT DISTINCT attempts FROM delivery_minutes") == [4]
    assert all_of("SELECT DISTINCT buckets FROM delivery_hours") == [[0, 1, *[0] * 11]]


def test_failed_writes_and_runs_are_groups(api: Api) -> None:
    at = ago(minutes=10)
    failed_job(api.workspace_id, "contacts.update", at)
    failed_job(api.workspace_id, "contacts.update", at)
    failed_job(api.workspace_id, "sales.create", at, "internal-error", 500)
    failed_run(api.workspace_id, "aut_1", at)
    api.contact(external_id="ada")

    counted()

    assert groups() == [
        ("job", "contacts.update", "not-found", 404),
        ("job", "sales.create", "internal-error", 500),
        ("run", "aut_1", "template", 0),
    ]
    assert all_of("SELECT failed FROM failure_minutes ORDER BY group_id") in ([2, 1, 1], [1, 2, 1], [1, 1, 2])


def test_a_group_knows_when_it_was_first_and_last_seen(api: Api) -> None:
    first, last = ago(hours=5), ago(minutes=2)
    attempted(api.workspace_id, "whe_1", first, "status", 503)
    counted()
    attempted(api.workspace_id, "whe_1", last, "status", 503)
    database.rows("UPDATE figure_progress SET counted_until = %s", (last,))
    counted()

    assert database.rows("SELECT first_seen_at, last_seen_at FROM failure_groups") == [(first, last)]


def test_a_pass_is_bounded_and_the_next_one_goes_on(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "SLICE_SECONDS", 0.0)
    database.rows("INSERT INTO figure_progress VALUES ('outcomes', %s)", (ago(minutes=5),))
    attempted(api.workspace_id, "whe_1", ago(minutes=4))
    attempted(api.workspace_id, "whe_1", ago(seconds=1))

    passes = 0
    while sum(attempts for attempts, *_ in minutes()) < 2:
        figures.count_outcomes()
        passes += 1

    assert passes > 2


def test_faults_of_ours_count_for_nothing(endpoint: Endpoint, happen: Happen) -> None:
    happen(1)
    sending.attempt(endpoint, sending.FAULT)

    counted()

    assert minutes() == []
    assert groups() == []


def test_writes_count_in_the_minute_they_were_accepted_in_with_what_became_of_them(api: Api) -> None:
    api.contact(external_id="ada")
    api.post("contacts", {"external_id": "bob"})
    at = database.now()
    database.rows("INSERT INTO figure_progress VALUES ('writes', %s)", (at - timedelta(minutes=1),))
    begun = at.astimezone(UTC).replace(second=0, microsecond=0)

    for minute in (begun - figures.MINUTE, begun):
        figures._count_writes_of(minute)
    assert sums_of_writes(api.workspace_id) == (2, 1, 0)
    api.apply()
    for minute in (begun - figures.MINUTE, begun):
        figures._count_writes_of(minute)

    assert sums_of_writes(api.workspace_id) == sums_of_writes("") == (2, 2, 0)


def sums_of_writes(workspace_id: str) -> tuple[int, ...]:
    [found] = database.rows(
        "SELECT sum(accepted)::int, sum(succeeded)::int, sum(failed)::int FROM job_minutes WHERE workspace_id = %s",
        (workspace_id,),
    )
    return tuple(found)


def test_minutes_of_writes_are_counted_up_to_the_last_that_is_over(empty: None) -> None:
    begun = database.now().astimezone(UTC).replace(second=0, microsecond=0)
    while not until_of_writes() or until_of_writes() < begun:
        figures.count_writes()

    assert until_of_writes() <= database.now()


def until_of_writes() -> datetime | None:
    found = all_of("SELECT counted_until FROM figure_progress WHERE name = 'writes'")
    return found[0] if found else None


def test_figures_are_kept_for_thirty_days_and_deleted_in_batches(api: Api) -> None:
    database.rows(
        "INSERT INTO job_minutes SELECT %s, now() - days * interval '1 day', 1, 1, 0"
        " FROM generate_series(0, 39) AS days",
        (api.workspace_id,),
    )
    database.rows(
        "INSERT INTO failure_groups (kind, workspace_id, subject, code, status, first_seen_at, last_seen_at)"
        " SELECT 'job', 'ws_1', days::text, 'x', 0, now() - interval '40 days', now() - days * interval '1 day'"
        " FROM generate_series(0, 39) AS days"
    )

    assert delete_old("old_figures", 7) == 14
    while delete_old("old_figures", 7):
        pass

    assert one("SELECT min(starts_at) > now() - interval '30 days 1 minute' FROM job_minutes")
    assert one("SELECT count(*) FROM job_minutes") == one("SELECT count(*) FROM failure_groups") == 30
