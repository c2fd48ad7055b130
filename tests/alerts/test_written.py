"""What fires in faults that take too long to play, or cannot be: the series are written by hand."""

from __future__ import annotations

import pytest

from tests.alerts.series import Seen, firing

LEADS = 'bellhop_scheduler_leads{instance="scheduler.1"}'
FREE = 'bellhop_media_free_bytes{directory="media",instance="scheduler.1"}'
REFUSED = 'bellhop_disk_refusals_total{disk="media",instance="scheduler.1"}'
TRANSACTION = 'bellhop_oldest_transaction_seconds{instance="scheduler.1"}'
FAULTS = 'bellhop_our_faults_total{cause="descriptors",instance="deliveries.1"}'
GIVEN_UP = 'bellhop_arrivals_total{outcome="failed",instance="messages.1"}'
BROKEN = 'http_requests_total{method="GET",route="/contacts",status="500",instance="web.1"}'
SLOW = 'bellhop_overdue_seconds{mail="slow_deliveries",instance="scheduler.1"}'
WAITING = 'bellhop_waiting_mail{mail="messages",instance="scheduler.1"}'
REQUESTS = 'http_requests_total{method="GET",route="/contacts",status="%s",instance="web.1"}'
QUICK, SLOWER, ANY = (
    f'http_request_duration_seconds_bucket{{method="GET",route="/contacts",le="{le}",instance="web.1"}}'
    for le in ("1.0", "5.0", "+Inf")
)
FINISHED = 'bellhop_jobs_finished_total{kind="contacts.upsert",status="%s",instance="writes.1"}'
ATTEMPTS = 'bellhop_delivery_attempt_duration_seconds_count{answer="%s",instance="deliveries.1"}'
LOST = 'bellhop_bells_total{outcome="lost",instance="web.1"}'
REDIS = 'bellhop_redis_away_total{instance="web.1"}'
STOPPED = 'bellhop_endpoints_stopped_total{reason="gone",instance="deliveries.1"}'
# As it is in ordinary hours: one leads, a disk has room, a slow receiver has its backlog, a transaction lasts a minute.
WELL = {LEADS: 1.0, FREE: 5e9, TRANSACTION: 60.0, FAULTS: 3.0, GIVEN_UP: 0.0, SLOW: 300.0, WAITING: 50_000.0}


def fires(first: dict[str, float], last: dict[str, float], seconds: float, minutes: int = 30) -> set[str]:
    """The alerts of a fault that changes these figures within some seconds, and goes on; before, none fires."""
    before, alerts = firing(Seen(WELL, WELL, 1), Seen(WELL | first, WELL | last, seconds), minutes)
    assert before == set()
    return alerts


@pytest.mark.parametrize(
    ("alert", "first", "last", "seconds"),
    [
        ("BellhopNoLeader", {LEADS: 2}, {LEADS: 2}, 1),
        ("BellhopDiskNearlyFull", {FREE: 1e9}, {FREE: 1e9}, 1),
        ("BellhopDiskRefuses", {REFUSED: 0}, {REFUSED: 1}, 60),
        ("BellhopOldTransaction", {TRANSACTION: 60}, {TRANSACTION: 120}, 60),
        ("BellhopFaultsOfOurs", {FAULTS: 3}, {FAULTS: 5}, 60),
        ("BellhopArrivalsGivenUp", {GIVEN_UP: 0}, {GIVEN_UP: 1}, 1_200),
        ("BellhopMailOverdue", {SLOW: 300}, {SLOW: 360}, 60),
        ("BellhopSlowResponses", {QUICK: 0, SLOWER: 0, ANY: 0}, {QUICK: 80, SLOWER: 100, ANY: 100}, 60),
        (
            "BellhopWritesFail",
            {FINISHED % "succeeded": 0, FINISHED % "failed": 0},
            {FINISHED % "succeeded": 70, FINISHED % "failed": 30},
            60,
        ),
        (
            "BellhopNothingReached",
            {ATTEMPTS % "2xx": 0, ATTEMPTS % "none": 0},
            {ATTEMPTS % "2xx": 10, ATTEMPTS % "none": 90},
            60,
        ),
        ("BellhopBellsLost", {LOST: 0}, {LOST: 120}, 60),
        ("BellhopRedisAway", {REDIS: 0}, {REDIS: 60}, 60),
        ("BellhopEndpointsStopped", {STOPPED: 0}, {STOPPED: 3}, 60),
        ("BellhopBacklogGrows", {WAITING: 50_000}, {WAITING: 50_100}, 60),
    ],
)
def test_a_fault_fires_its_alert_alone(
    alert: str, first: dict[str, float], last: dict[str, float], seconds: float
) -> None:
    assert fires(first, last, seconds, minutes=100) == {alert}


def test_the_first_request_that_breaks_is_told_although_its_series_begins_with_it() -> None:
    assert fires({BROKEN: 1}, {BROKEN: 1}, 1) == {"BellhopInternalErrors"}


def test_a_large_backlog_that_becomes_less_is_no_fault() -> None:
    assert fires({WAITING: 900_000}, {WAITING: 900_000}, 1, minutes=120) == set()
