"""What one may have, so that none takes the service from the others."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from app import bounds
from app.bounds import Bound, Places, Rates


def reached(bound: Bound) -> float:
    return REGISTRY.get_sample_value("bellhop_bounds_reached_total", {"bound": bound.name}) or 0


def test_each_key_has_as_many_places_as_the_bound_says() -> None:
    bound = Bound("of_two", 2, "places")
    places = Places(bound)

    assert [places.take("a"), places.take("a"), places.take("a"), places.take("b")] == [True, True, False, True]
    assert reached(bound) == 1


def test_a_place_that_is_left_can_be_taken_again() -> None:
    places = Places(Bound("of_one", 1, "places"))
    places.take("a")
    places.leave("a")

    assert [places.take("a"), places.take("a")] == [True, False]


def test_each_key_has_a_rate_and_its_minute_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, now = Bound("two_a_minute", 2, "times a minute"), 1_000.0
    rates = Rates()
    monkeypatch.setattr(bounds.time, "monotonic", lambda: now)

    assert [rates.take(key, bound) for key in "aaab"] == [0, 0, 60, 0]
    now += 59
    assert rates.take("a", bound) == 1
    now += 1
    assert rates.take("a", bound) == 0
    assert reached(bound) == 2
