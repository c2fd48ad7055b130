"""Charts: the SVG geometry of figures over time, and the rows of the table beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

WIDTH, HEIGHT = 420, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 10, 24
_TICKS = 4  # the most grid lines
# The possible distances between labels below a chart, and the most labels that fit.
_DISTANCES = tuple(timedelta(minutes=minutes) for minutes in (10, 60, 240, 1440, 5 * 1440))
_MOST_LABELS = 8
SPARK_WIDTH, SPARK_HEIGHT = 112, 26
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Series:
    """A line's name and its values by step, None for a gap. `is_bad`: it counts failures or delays.

    `is_second`: it is drawn differently from the first line.
    """

    name: str
    values: Sequence[float | None]
    is_bad: bool = False
    is_second: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A series as SVG paths: `path` is the line, `area` the surface below it."""

    name: str
    path: str
    area: str
    is_bad: bool
    is_second: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick on an axis: its position in pixels, and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The data of the macro `chart`. `rows`: the time or label of each step, with all values as text.

    `x_ticks` are in the time zone `zone`. `since` and `until`: the first and last step, if they are times; the script
    uses them to put ticks in the reader's time zone.
    """

    id: str
    title: str
    summary: str
    lines: Sequence[Line]
    y_ticks: Sequence[Tick]
    x_ticks: Sequence[Tick]
    names: Sequence[str]
    rows: Sequence[tuple[datetime | str, Sequence[str]]]
    zone: str
    since: datetime | None
    until: datetime | None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


def chart(
    id: str,
    title: str,
    steps: Sequence[datetime],
    series: Sequence[Series],
    write: Callable[[float | None], str],
    labels: Sequence[str] = (),
    zone: str = "UTC",
) -> Chart:
    """Creates a chart of series over the same steps. `write` formats a value, or None.

    `labels`: labels of the steps, in the time zone `zone`, instead of times.
    """
    highest = max((value for each in series for value in each.values if value is not None), default=0)
    ceiling, tick = _scale(highest)

    def x_of(index: int) -> float:
        return _LEFT + index * (WIDTH - _LEFT - _RIGHT) / max(len(steps) - 1, 1)

    def y_of(value: float) -> float:
        return HEIGHT - _BOTTOM - value * (HEIGHT - _TOP - _BOTTOM) / ceiling

    y_ticks = [Tick(y_of(number * tick), write(number * tick)) for number in range(round(ceiling / tick) + 1)]
    labelled = _every_few(labels) if labels else _round_moments(steps)
    headings: Sequence[datetime | str] = labels or steps
    return Chart(
        id=id,
        title=title,
        summary=_summary(series, write),
        lines=[_line(each, x_of, y_of) for each in series],
        y_ticks=y_ticks,
        x_ticks=[Tick(x_of(index), label) for index, label in labelled],
        names=[each.name for each in series],
        rows=[(step, [write(each.values[index]) for each in series]) for index, step in enumerate(headings)][::-1],
        zone=zone,
        since=None if labels else steps[0],
        until=None if labels else steps[-1],
    )


def spark(values: Sequence[float]) -> str:
    """Returns a line as an SVG path in SPARK_WIDTH by SPARK_HEIGHT; "" with fewer than two values."""
    highest = max(values, default=0)
    if len(values) < 2:
        return ""
    points = [
        (
            1 + index * (SPARK_WIDTH - 2) / (len(values) - 1),
            SPARK_HEIGHT - 2 - (value * (SPARK_HEIGHT - 4) / highest if highest else 0),
        )
        for index, value in enumerate(values)
    ]
    return _path([points])


def _round_moments(steps: Sequence[datetime]) -> list[tuple[int, str]]:
    distance = next((each for each in _DISTANCES if (steps[-1] - steps[0]) / each < _MOST_LABELS), _DISTANCES[-1])
    pattern = "%d %b" if distance >= timedelta(days=1) else "%H:%M"
    return [(index, step.strftime(pattern)) for index, step in enumerate(steps) if not (step - _EPOCH) % distance]


def _every_few(labels: Sequence[str]) -> list[tuple[int, str]]:
    """Returns as many equally spaced labels as fit, with their positions."""
    distance = -(-len(labels) // _MOST_LABELS)
    return list(enumerate(labels))[::distance]


def _scale(highest: float) -> tuple[float, float]:
    """Returns the end of the axis and the distance of its ticks: 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return 1.0, 1.0
    power: float = 1
    while power * 10 <= highest / _TICKS:
        power *= 10
    tick = next(step * power for step in (1, 2, 5, 10) if step * power * _TICKS >= highest)
    return tick * -(-highest // tick), tick


def _summary(series: Sequence[Series], write: Callable[[float | None], str]) -> str:
    """Describes the chart for screen readers: the highest and last value of each series."""
    sentences = []
    for each in series:
        known = [value for value in each.values if value is not None]
        values = f"highest {write(max(known))}, last {write(known[-1])}" if known else "none"
        sentences.append(f"{each.name}: {values}.")
    return " ".join(sentences)


def _line(series: Series, x_of: Callable[[int], float], y_of: Callable[[float], float]) -> Line:
    pieces: list[list[tuple[float, float]]] = [[]]
    for index, value in enumerate(series.values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((x_of(index), y_of(value)))
    drawn = [piece for piece in pieces if piece]
    floor = y_of(0)
    closed = " ".join(f"{_path([piece])}V{floor:.1f}H{piece[0][0]:.1f}Z" for piece in drawn)
    return Line(series.name, _path(drawn), closed, series.is_bad, series.is_second)


def _path(pieces: Sequence[Sequence[tuple[float, float]]]) -> str:
    # Draws a single point as a short dash.
    return " ".join(
        "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in piece) + ("h1" if len(piece) == 1 else "") for piece in pieces
    )
