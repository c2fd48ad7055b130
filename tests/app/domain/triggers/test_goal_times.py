"""Times to goals are counted in classes, and goals by the arms that runs took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.domain.triggers import goal_times

BEGUN = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize("seconds", [-5, 0, 0.5, 1, 1.01, 60, 3600, 86_400, 90 * 86_400])
def test_the_longest_time_of_a_class_is_a_quarter_too_long_at_most(seconds: float) -> None:
    longest = goal_times.longest_seconds(goal_times.class_of(timedelta(seconds=seconds)))

    assert max(seconds, 1) <= longest * 1.000001
    assert longest <= max(seconds, 1) * goal_times.RATIO * 1.000001


def test_quantiles_are_of_classes() -> None:
    by_class = {0: 5, 10: 4, 20: 1}

    assert goal_times.quantile(by_class, 0.5) == 1
    assert goal_times.quantile(by_class, 0.9) == goal_times.longest_seconds(10)
    assert goal_times.quantile(by_class, 1) == goal_times.longest_seconds(20)
    assert goal_times.quantile({}, 0.5) is None


def test_goals_are_counted_by_arm_and_what_only_looks_like_one_is_not() -> None:
    saved = {"coupon": {"arm": "ten"}, "answer": "x", "odd": {"arm": "x" * 70}, "more": {"arm": "a", "b": 1}}

    found = list(goal_times.counted(saved, BEGUN, BEGUN + timedelta(seconds=2)))

    assert found == [("", "goal_after:4"), ("coupon", "goal_arm:ten")]
