"""How a web chat looks: colors that can be read, and hours as moments."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.channels.web_chat import DAYS
from app.domain.channels import chat_looks

WEDNESDAY = datetime(2026, 11, 25, 12, tzinfo=UTC)
CLOCKS = st.builds(lambda hour, minute: f"{hour:02}:{minute:02}", st.integers(0, 23), st.sampled_from([0, 30]))
SPANS = st.builds(lambda begins, ends: {"from": begins, "to": ends}, CLOCKS, CLOCKS)
WEEKS = st.dictionaries(st.sampled_from(DAYS), st.lists(SPANS, max_size=4))
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC))


def hours(week: dict[str, list[tuple[str, str]]], zone: str, now: datetime) -> list[tuple[str, str]]:
    spans = {day: [{"from": begins, "to": ends} for begins, ends in each] for day, each in week.items()}
    found = chat_looks.opening_hours(spans, zone, now)
    return [(f"{begins:%a %d %H:%M}", f"{ends:%a %d %H:%M}") for begins, ends in found]


def test_hours_are_moments_from_now_on_for_a_week() -> None:
    found = hours({"wednesday": [("09:00", "12:30"), ("13:30", "18:00")]}, "Europe/Berlin", WEDNESDAY)

    # 12:00 in UTC is 13:00 there: the morning is over.
    assert found[:3] == [
        ("Wed 25 12:30", "Wed 25 17:00"),
        ("Wed 02 08:00", "Wed 02 11:30"),
        ("Wed 02 12:30", "Wed 02 17:00"),
    ]


def test_a_span_may_last_over_midnight_and_meet_the_next() -> None:
    found = hours({"tuesday": [("22:00", "13:00")], "wednesday": [("12:30", "14:00")]}, "UTC", WEDNESDAY)

    assert found[0] == ("Tue 24 22:00", "Wed 25 14:00")


def test_a_day_of_23_hours_keeps_its_clock() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)

    found = hours({"saturday": [("09:00", "17:00")], "sunday": [("09:00", "17:00")]}, "Europe/Berlin", before)

    assert found[:2] == [("Sat 28 08:00", "Sat 28 16:00"), ("Sun 29 07:00", "Sun 29 15:00")]


@given(WEEKS, ZONES, MOMENTS)
def test_the_spans_are_in_order_apart_and_not_over(
    week: dict[str, list[dict[str, str]]], zone: str, now: datetime
) -> None:
    found = chat_looks.opening_hours(week, zone, now)

    moments = [moment for span in found for moment in span]
    assert moments == sorted(set(moments))
    assert all(ends > now for _, ends in found)
    # Every day that has hours comes within a week, twice if it is today.
    assert bool(found) == any(week.values())
    assert not found or found[0][0] <= now + timedelta(days=8)


@given(st.binary(min_size=3, max_size=3))
def test_every_color_can_be_read_in_both_schemes(channels: bytes) -> None:
    look = chat_looks.facts({"color": f"#{channels.hex()}"}, "UTC", WEDNESDAY)["look"]

    light, dark = re.findall(r"--accent:(#[0-9a-f]{6})\}", look)
    assert contrast(light, "#ffffff") >= 4.5
    assert contrast(dark, "#17191f") >= 4.5


@pytest.mark.parametrize(("color", "light"), [("#1f4fd8", "#1f4fd8"), ("#000000", "#000000"), ("#ffff00", "#7a7a00")])
def test_a_color_is_changed_only_as_far_as_needed(color: str, light: str) -> None:
    assert f"--accent:{light}" in chat_looks.facts({"color": color}, "UTC", WEDNESDAY)["look"]


def test_what_is_not_set_costs_no_bytes() -> None:
    nothing = {"greeting": None, "color": None, "picture": None, "opening_hours": {"monday": []}}

    assert chat_looks.facts(nothing, "UTC", WEDNESDAY) == chat_looks.facts({}, "UTC", WEDNESDAY) == {}


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2, written down again."""

    def luminance(color: str) -> float:
        red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
        curved = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in (red, green, blue)]
        return 0.2126 * curved[0] + 0.7152 * curved[1] + 0.0722 * curved[2]

    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)
