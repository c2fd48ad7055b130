from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from app.web import charts
from app.web.charts import Chart, Series
from app.web.formats import number

START = datetime(2026, 11, 23, 6, tzinfo=UTC)
STEPS = [START + minute * timedelta(minutes=1) for minute in range(61)]


def made(*series: Series) -> Chart:
    return charts.chart("attempts", "Attempts", STEPS, series, number)


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", path)]


def test_a_line_goes_through_all_values_within_its_frame() -> None:
    chart = made(Series("delivered", list(range(61))))

    drawn = points(chart.lines[0].path)

    assert len(drawn) == 61
    assert drawn[0] == (chart.left, chart.bottom)
    assert drawn[-1][0] == chart.right
    assert all(0 < y <= chart.bottom for _, y in drawn)
    assert drawn == sorted(drawn, key=lambda point: (point[0], -point[1]))


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0, ["0", "1"]),
        (1, ["0", "1"]),
        (3, ["0", "1", "2", "3"]),
        (7, ["0", "2", "4", "6", "8"]),
        (50, ["0", "20", "40", "60"]),
        (1234567, ["0", "500,000", "1,000,000", "1,500,000"]),
    ],
)
def test_the_axis_has_round_numbers_up_to_the_highest_value(highest: int, labels: list[str]) -> None:
    chart = made(Series("delivered", [highest] * 61))

    assert [tick.label.removesuffix(".0") for tick in chart.y_ticks] == labels


def test_a_step_without_a_value_leaves_a_gap() -> None:
    chart = made(Series("latency", [5.0, None, None, 7.0, 8.0, *[None] * 56]))

    assert chart.lines[0].path.count("M") == 2
    assert len(points(chart.lines[0].path)) == 3
    assert made(Series("latency", [None] * 61)).lines[0].path == ""


def test_a_chart_is_told_in_words_and_as_a_table() -> None:
    chart = made(Series("delivered", [1] * 60 + [4]), Series("failed", [9, *[0] * 60], is_bad=True))

    assert chart.summary == "delivered: highest 4, last 4. failed: highest 9, last 0."
    assert chart.names == ["delivered", "failed"]
    assert chart.rows[0] == (STEPS[-1], ["4", "0"])
    assert len(chart.rows) == 61


@pytest.mark.parametrize(
    ("length", "step", "labels"),
    [
        (timedelta(hours=1), timedelta(minutes=1), ["06:00", "06:10", "06:20", "06:30", "06:40", "06:50", "07:00"]),
        (timedelta(hours=24), timedelta(hours=1), ["08:00", "12:00", "16:00", "20:00", "00:00", "04:00"]),
        (timedelta(days=7), timedelta(hours=3), [f"{day} Nov" for day in range(24, 31)]),
        (timedelta(days=30), timedelta(hours=12), ["25 Nov", "30 Nov", "05 Dec", "10 Dec", "15 Dec", "20 Dec"]),
    ],
)
def test_the_time_is_labelled_at_round_moments(length: timedelta, step: timedelta, labels: list[str]) -> None:
    start = START.replace(hour=0) if step == timedelta(hours=12) else START
    steps = [start + number * step for number in range(length // step + 1)]

    chart = charts.chart("attempts", "Attempts", steps, [Series("a", [0] * len(steps))], number)

    assert [tick.label for tick in chart.x_ticks] == labels
    assert all(chart.left <= tick.at <= chart.right for tick in chart.x_ticks)
    assert (chart.since, chart.until, chart.zone) == (steps[0], steps[-1], "UTC")


def test_labelled_steps_are_of_the_zone_and_the_script_leaves_them() -> None:
    chart = charts.chart("a", "A", STEPS[:2], [Series("a", [1, 2])], number, ["Mon", "Tue"], "Asia/Tokyo")

    assert [tick.label for tick in chart.x_ticks] == ["Mon", "Tue"]
    assert (chart.since, chart.until, chart.zone) == (None, None, "Asia/Tokyo")


def test_a_spark_stays_within_its_frame() -> None:
    drawn = points(charts.spark([0, 5, 10, 5]))

    assert len(drawn) == 4
    assert all(0 < x < charts.SPARK_WIDTH and 0 < y < charts.SPARK_HEIGHT for x, y in drawn)
    assert charts.spark([]) == charts.spark([3]) == ""
    assert len({y for _, y in points(charts.spark([0, 0, 0]))}) == 1
