from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from app import bells, mailbox, metrics
from app.database import rows
from app.domain.deliveries import lanes
from app.domain.jobs import jobs
from app.lib import ids
from scheduler import overdue
from scheduler.overdue import Overdue
from tests.cast import in_threads, rung_on

pytestmark = pytest.mark.usefixtures("empty")


@pytest.fixture(autouse=True)
def rings_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has rung is seen, however busy the machine is."""
    monkeypatch.setattr(bells, "RINGING_SECONDS", 60)


def wait_for_work(*owners: str, seconds: float = 10) -> None:
    for owner in owners:
        rows(
            "INSERT INTO jobs (id, workspace_id, kind, trace_id, due_at)"
            " VALUES (%s, %s, 'contacts.upsert', 't', now() - %s * interval '1 second')",
            (ids.new("job"), owner, seconds),
        )


def rung() -> list[str]:
    bells.flush(20)
    return sorted(key.decode().removeprefix("bell:writes:") for key in bells.flags().keys("bell:writes:*"))


def test_a_round_rings_for_owners_who_have_waited_too_long() -> None:
    wait_for_work("ws_1", "ws_2", seconds=100)
    wait_for_work("ws_3", seconds=0)

    assert Overdue(jobs.MAIL, overdue_seconds=50)() == 2

    assert rung() == ["ws_1", "ws_2"]


def test_a_round_without_anyone_waiting_rings_for_nobody() -> None:
    assert Overdue(jobs.MAIL, overdue_seconds=1)() == 0
    assert Overdue(lanes.FAST, overdue_seconds=1)() == 0


def test_a_round_looks_at_so_many_and_the_next_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(overdue, "SLICE_SECONDS", 0)
    wait_for_work("ws_1", "ws_2", "ws_3", "ws_4", "ws_5")
    each = Overdue(jobs.MAIL, overdue_seconds=1)

    assert each() == 2
    assert rung() == ["ws_1", "ws_2"]
    assert [each(), each()] == [2, 1]
    assert rung() == ["ws_1", "ws_2", "ws_3", "ws_4", "ws_5"]


def test_a_round_goes_on_while_there_are_more_and_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "MOST_LOOKED_AT", 2)
    wait_for_work("ws_1", "ws_2", "ws_3", "ws_4", "ws_5")

    assert Overdue(jobs.MAIL, overdue_seconds=1)() == 5

    assert rung() == ["ws_1", "ws_2", "ws_3", "ws_4", "ws_5"]


def test_after_the_last_owner_the_pass_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(overdue, "SLICE_SECONDS", 0)
    wait_for_work("ws_1", "ws_2", "ws_3")
    each = Overdue(jobs.MAIL, overdue_seconds=1)
    assert [each(), each()] == [2, 1]
    rung()
    bells.flags().flushdb()

    each()

    assert rung() == ["ws_1", "ws_2"]


def test_no_round_is_in_vain_when_one_can_look_at_just_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "MOST_LOOKED_AT", 2)
    wait_for_work("ws_1", "ws_2")
    each = Overdue(jobs.MAIL, overdue_seconds=1)

    assert [each(), each()] == [2, 2]


def test_two_leaders_who_make_a_round_at_once_ring_once_for_each() -> None:
    wait_for_work("ws_1", "ws_2")

    in_threads([Overdue(jobs.MAIL, overdue_seconds=1)] * 4)

    assert rung_on("writes") == ["ws_1", "ws_2"]


def oldest() -> float | None:
    return REGISTRY.get_sample_value("bellhop_overdue_seconds", {"mail": "jobs"})


def test_the_age_of_the_oldest_mail_rises_at_once_and_falls_after_a_whole_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overdue, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(overdue, "SLICE_SECONDS", 0)
    metrics.OVERDUE_SECONDS.clear()
    wait_for_work("ws_1", seconds=100)
    wait_for_work("ws_2", "ws_3")
    each = Overdue(jobs.MAIL, overdue_seconds=1)

    each()
    assert 100 <= oldest() < 200
    each()
    assert 100 <= oldest() < 200

    rows("UPDATE jobs SET due_at = now() - interval '10 seconds' WHERE workspace_id = 'ws_1'")
    each()
    assert oldest() >= 100
    each()
    assert oldest() < 100

    rows("UPDATE jobs SET due_at = NULL")
    each()
    assert oldest() == 0


def test_where_no_mail_is_left_the_oldest_is_forgotten_and_the_next_round_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overdue, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(overdue, "SLICE_SECONDS", 0)
    wait_for_work("ws_1", "ws_2", "ws_3", seconds=100)
    each = Overdue(jobs.MAIL, overdue_seconds=1)
    each()
    rows("UPDATE jobs SET due_at = NULL")

    each.rest()

    assert oldest() == 0
    wait_for_work("ws_4", seconds=10)
    assert each() == 1
    assert 10 <= oldest() < 100


def test_a_round_changes_nothing_of_the_mail() -> None:
    wait_for_work("ws_1")
    before = rows("SELECT * FROM jobs")

    Overdue(jobs.MAIL, overdue_seconds=1)()

    assert rows("SELECT * FROM jobs") == before
    assert len(mailbox.claim(jobs.MAIL, {"ws_1": 10}, 5)) == 1
