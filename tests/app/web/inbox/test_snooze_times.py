"""Times in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.errors import Invalid
from app.web.inbox import snooze_times

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("words", "zone", "expected"),
    [
        ("tomorrow 9", "Europe/Berlin", "2026-11-26T09:00:00+01:00"),
        ("Tomorrow at 9", "Europe/Berlin", "2026-11-26T09:00:00+01:00"),
        ("tomorrow 9:00", "Asia/Tokyo", "2026-11-26T09:00:00+09:00"),
        ("in 2 hours", "Asia/Tokyo", "2026-11-25T23:00:00+09:00"),
        ("Friday 14:30", "America/New_York", "2026-11-27T14:30:00-05:00"),
        ("monday 9:00", "UTC", "2026-11-30T09:00:00+00:00"),
        ("in 1 week", "UTC", "2026-12-02T12:00:00+00:00"),
        ("2026-12-24 10:00", "Europe/Berlin", "2026-12-24T10:00:00+01:00"),
        # Summer time begins on 28 March 2027 in Berlin.
        ("2027-03-29 9:00", "Europe/Berlin", "2027-03-29T09:00:00+02:00"),
    ],
)
def test_a_time_is_one_of_the_zone(words: str, zone: str, expected: str) -> None:
    assert snooze_times.read(words, zone, NOW) == datetime.fromisoformat(expected)


@pytest.mark.parametrize("choice", snooze_times.CHOICES)
def test_every_choice_is_understood(choice: str) -> None:
    assert snooze_times.read(choice, "UTC", NOW) > NOW


@pytest.mark.parametrize(
    "words", ["", "when pigs fly", "half past", "1" * 61, "2020-01-01", "in 2 years", "\0", "in 9" * 9]
)
def test_what_is_no_time_to_come_is_refused(words: str) -> None:
    with pytest.raises(Invalid):
        snooze_times.read(words, "UTC", NOW)


@pytest.mark.parametrize("words", ["0001-01-01 00:00", "9999-12-31 23:59"])
def test_a_time_beyond_all_is_refused(words: str) -> None:
    for zone in ("Asia/Tokyo", "America/New_York"):
        with pytest.raises(Invalid):
            snooze_times.read(words, zone, NOW)


def test_a_zone_that_is_not_known_is_the_workspaces() -> None:
    assert snooze_times.zone_of("Europe/Berlin", "UTC") == "Europe/Berlin"
    assert [snooze_times.zone_of(name, "UTC") for name in ("", "../etc/passwd", "x" * 300)] == ["UTC"] * 3
