"""Intervals of shares, against figures from the papers that describe them."""

from __future__ import annotations

import pytest

from app.domain.automations import results
from app.domain.automations.results import Arm, Proportion, difference


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval(part: int, whole: int, low: float, high: float) -> None:
    assert Proportion(part, whole).interval() == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 10), 0.6075, 1)],
)
def test_newcombes_interval_of_a_difference(
    one: tuple[int, int], other: tuple[int, int], low: float, high: float
) -> None:
    found = difference(Proportion(*one), Proportion(*other))

    assert found == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_nothing_is_known_of_nothing() -> None:
    assert Proportion(0, 0).interval() == (0, 1)


def arms(*shares: tuple[int, int]) -> list[Arm]:
    return [Arm("abcdefgh"[number], Proportion(*share)) for number, share in enumerate(shares)]


@pytest.mark.parametrize(
    ("shares", "kind"),
    [
        ([], "too_few"),
        ([(5, 100)], "too_few"),
        ([(5, 29), (20, 100)], "too_few"),
        ([(1, 100), (2, 100)], "too_few"),
        ([(100, 100), (98, 100)], "too_few"),
        ([(10, 100), (12, 100)], "open"),
        ([(10, 100), (30, 100)], "different"),
        ([(0, 0), (10, 100), (30, 100)], "different"),
        ([(100_000, 1_000_000), (101_000, 1_000_000)], "different"),
    ],
)
def test_whether_a_difference_means_anything(shares: list[tuple[int, int]], kind: str) -> None:
    assert results.compare(arms(*shares)).kind == kind


def test_of_many_arms_each_pair_has_to_be_clearer() -> None:
    pair = ((10, 100), (21, 100))

    assert results.compare(arms(*pair)).kind == "different"
    assert results.compare(arms(*pair, *[(15, 100)] * 6)).kind == "open"


def test_the_better_one_is_named_with_how_much_better_it_is() -> None:
    verdict = results.compare(arms((10, 100), (30, 100)))

    assert (verdict.better, verdict.worse) == ("b", "a")
    assert 0 < verdict.low < 0.2 < verdict.high
