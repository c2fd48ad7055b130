from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app import database
from app.domain.insight import figures, trends
from app.domain.insight.trends import WINDOWS, Attempts, Window
from tests.cast import Api
from tests.figures import ago, attempted, counted

AT = datetime(2026, 11, 23, 6, 51, 30, tzinfo=UTC)

pytestmark = pytest.mark.usefixtures("without_lag")


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_a_window_has_equal_steps_up_to_the_present_one(window: Window) -> None:
    steps = window.steps(AT)

    assert steps[0] == window.since(AT) <= AT - window.length
    assert steps[-1] <= AT < steps[-1] + window.step
    assert len(steps) == window.length / window.step + 1 <= 62


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_every_step_of_a_window_has_its_attempts(api: Api, window: Window) -> None:
    attempted(api.workspace_id, "whe_1", ago(minutes=30), times=2, duration_ms=80)
    attempted(api.workspace_id, "whe_1", ago(minutes=30), "status", 500, duration_ms=80)
    attempted(api.workspace_id, "whe_2", ago(minutes=30), duration_ms=80)
    counted()

    [step] = [each for each in trends.attempts(window, api.workspace_id, "whe_1") if each.attempts]
    of_all = trends.total(trends.attempts(window))

    assert (step.attempts, step.delivered, step.failed, step.final, step.duration_ms) == (3, 2, 1, 1, 240)
    assert step.starts_at in window.steps(database.now())
    assert (of_all.attempts, of_all.failed) == (4, 1)
    assert trends.total(trends.attempts(window, api.workspace_id)) == of_all


def test_what_is_older_than_the_window_is_not_in_it(api: Api) -> None:
    attempted(api.workspace_id, "whe_1", ago(hours=2))
    counted()

    assert trends.total(trends.attempts(WINDOWS["1h"], api.workspace_id)).attempts == 0
    assert trends.total(trends.attempts(WINDOWS["24h"], api.workspace_id)).attempts == 1


def of_buckets(**numbers: int) -> Attempts:
    """Attempts by the upper bounds of their durations, as in `below_10=3`."""
    buckets = [numbers.get(f"below_{bound}", 0) for bound in figures.BOUNDS_MS] + [numbers.get("beyond", 0)]
    return Attempts(AT, sum(buckets), sum(buckets), 0, 0, buckets)


def test_a_percentile_lies_within_its_bucket() -> None:
    assert of_buckets(below_10=10).percentile_ms(0.5) == 5
    assert of_buckets(below_10=5, below_50=5).percentile_ms(0.95) == pytest.approx(47.5)
    assert of_buckets(below_10=99, beyond=1).percentile_ms(0.5) == pytest.approx(10 * 50 / 99)
    assert of_buckets(beyond=4).percentile_ms(0.5) == figures.BOUNDS_MS[-1]
    assert of_buckets().percentile_ms(0.5) is None


def test_writes_are_summed_by_step(api: Api) -> None:
    database.rows(
        "INSERT INTO job_minutes SELECT %s, date_trunc('minute', now()) - n * interval '1 minute', 5, 3, 1"
        " FROM generate_series(0, 119) AS n",
        (api.workspace_id,),
    )

    day = trends.writes(WINDOWS["24h"], api.workspace_id)
    hour = trends.writes(WINDOWS["1h"], api.workspace_id)

    assert sum(step.accepted for step in day) == 120 * 5
    assert [(step.accepted, step.succeeded, step.failed) for step in hour] == [(5, 3, 1)] * 61
    assert sum(step.accepted for step in trends.writes(WINDOWS["24h"])) == 0
    assert hour[0].starts_at == hour[-1].starts_at - timedelta(hours=1)


@pytest.mark.parametrize(
    ("hours", "step", "grain"),
    [(1, 1, "minutes"), (6, 5, "minutes"), (32, 60, "hours"), (200, 180, "hours"), (720, 720, "hours")],
)
def test_a_range_has_all_steps_that_it_touches(hours: int, step: int, grain: str) -> None:
    until = datetime(2026, 11, 25, 22, 31, 12, tzinfo=UTC)

    window, at = trends.between(until - timedelta(hours=hours), until)

    steps = window.steps(at)
    assert (window.step, window.grain) == (timedelta(minutes=step), grain)
    assert steps[0] <= until - timedelta(hours=hours) < steps[1]
    assert steps[-1] < until <= steps[-1] + window.step
    assert len(steps) <= trends.MOST_STEPS


def test_a_range_is_no_longer_than_figures_are_kept() -> None:
    until = datetime(2026, 11, 25, tzinfo=UTC)

    window, at = trends.between(until - timedelta(days=400), until)

    assert window.since(at) == until - timedelta(days=30)
