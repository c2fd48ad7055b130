"""Reports of the inbox, read from its figures. The cost does not grow with the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.database import replica, rows
from app.domain.reports import periods
from app.domain.reports.histograms import quantile
from app.domain.reports.openings import COUNTS, DURATIONS
from app.domain.reports.periods import Period

# How many values of a dimension are shown: the most active ones. The others are summed up.
MOST_SHOWN = 200
# The measures that are counted by hour of the week.
OF_WEEK = ("received", "sent", "opened", "closed")


@dataclass(slots=True)
class Figures:
    """Sums of figures. `counts`: by the names in COUNTS. `histograms`: by the names in DURATIONS."""

    counts: Counter[str] = field(default_factory=Counter)
    histograms: Mapping[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in DURATIONS})

    def count(self, measure: str, bucket: int, amount: int) -> None:
        """Adds an amount to a measure. `bucket` matters only for durations."""
        if measure in self.histograms:
            self.histograms[measure][bucket] += amount
        else:
            self.counts[measure] += amount

    def add(self, other: Figures) -> None:
        """Adds the counts and histograms of `other`."""
        self.counts.update(other.counts)
        for name, histogram in other.histograms.items():
            self.histograms[name].update(histogram)

    def seconds(self, duration: str, share: float) -> float | None:
        """Returns the seconds that `share` of the durations did not exceed; None if there are none."""
        return quantile(self.histograms[duration], share)

    @property
    def activity(self) -> int:
        """The sum of all counts, by which values are ranked."""
        return sum(self.counts[name] for name in COUNTS)


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of a period. `steps`: the beginning of each step, with its figures, in order.

    `before`: the figures of the period before; None if figures do not reach back that far. `since`: when the
    installation's figures begin; None if there are none yet.
    """

    period: Period
    total: Figures
    before: Figures | None
    steps: Sequence[tuple[datetime, Figures]]
    since: datetime | None


@replica.may_read
def read(workspace_id: str, period: Period) -> Report:
    """Returns the report of the workspace's whole inbox. Takes three statements."""
    progress = rows("SELECT begun_at FROM inbox_figure_progress")
    since = progress[0][0] if progress else None
    steps = period.steps()
    found = _sums(workspace_id, "", steps)
    of_steps = [found.get((number, ""), Figures()) for number in range(len(steps))]
    total = Figures()
    for each in of_steps:
        total.add(each)
    before = None
    if since is not None and since <= period.before.since:
        earlier = _sums(workspace_id, "", [(period.before.since, period.before.until)])
        before = earlier.get((0, ""), Figures())
    return Report(period, total, before, [(step[0], each) for step, each in zip(steps, of_steps, strict=True)], since)


@replica.may_read
def by(workspace_id: str, dimension: str, period: Period) -> tuple[dict[str, Figures], Figures | None]:
    """Returns the figures of the period for each value of the dimension, and the sum of the others.

    The most active values come first, up to MOST_SHOWN. The sum is None if there are no others. Takes one statement.
    """
    sums = _sums(workspace_id, dimension, [(period.since, period.until)])
    found = {value: figures for (_, value), figures in sums.items()}
    others = [found.pop("")] if "" in found else []
    ranked = sorted(found, key=lambda value: (-found[value].activity, value))
    others += [found[value] for value in ranked[MOST_SHOWN:]]
    rest = Figures()
    for each in others:
        rest.add(each)
    return {value: found[value] for value in ranked[:MOST_SHOWN]}, rest if others else None


@replica.may_read
def of_week(workspace_id: str, period: Period) -> dict[tuple[int, int], Counter[str]]:
    """Returns the counts of OF_WEEK by (weekday, hour) in the period's zone. Monday is weekday 1."""
    found: dict[tuple[int, int], Counter[str]] = {}
    values = {"workspace_id": workspace_id, "zone": period.zone.key, "measures": list(OF_WEEK)}
    for day, hour, measure, amount in rows(_OF_WEEK, {**values, "since": period.since, "until": period.until}):
        found.setdefault((day, hour), Counter())[measure] = amount
    return found


def _sums(
    workspace_id: str, dimension: str, spans: Sequence[tuple[datetime, datetime]]
) -> dict[tuple[int, str], Figures]:
    """Returns the figures of each span, by (its index in `spans`, value)."""
    pieces = [(number, *piece) for number, span in enumerate(spans) for piece in periods.pieces(*span)]
    numbers, grains, starts, ends = (list(column) for column in zip(*pieces, strict=True))
    values = {"workspace_id": workspace_id, "dimension": dimension, "measures": [*COUNTS, *DURATIONS]}
    found: dict[tuple[int, str], Figures] = {}
    query = {**values, "numbers": numbers, "grains": grains, "starts": starts, "ends": ends}
    for number, value, measure, bucket, amount in rows(_SUMS, query):
        found.setdefault((number, value), Figures()).count(measure, bucket, amount)
    return found


# Each piece of a measure is a range of the primary key, which the planner would not recognize in a join. Whole pairs
# are compared, so that the planner uses this index and not the one by age, which has the figures of all workspaces.
_SUMS = """
    SELECT piece.number, counted.value, measure, counted.bucket, sum(counted.amount)::bigint
    FROM unnest(%(numbers)s::int[], %(grains)s::text[], %(starts)s::timestamptz[], %(ends)s::timestamptz[])
        AS piece(number, grain, since, until)
    CROSS JOIN unnest(%(measures)s::text[]) AS measure
    CROSS JOIN LATERAL (
        SELECT value, bucket, sum(amount) AS amount FROM inbox_figures
        WHERE workspace_id = %(workspace_id)s AND dimension = %(dimension)s AND grain = piece.grain
            AND (inbox_figures.measure, starts_at) >= (measure.measure, piece.since)
            AND (inbox_figures.measure, starts_at) < (measure.measure, piece.until)
        GROUP BY value, bucket) AS counted
    GROUP BY 1, 2, 3, 4
"""

_OF_WEEK = """
    SELECT extract(isodow FROM local)::int, extract(hour FROM local)::int, measure, sum(amount)::bigint
    FROM unnest(%(measures)s::text[]) AS wanted(name)
    CROSS JOIN LATERAL (
        SELECT starts_at AT TIME ZONE %(zone)s AS local, measure, amount FROM inbox_figures
        WHERE workspace_id = %(workspace_id)s AND dimension = '' AND grain = 'hour'
            AND (measure, starts_at) >= (wanted.name, %(since)s) AND (measure, starts_at) < (wanted.name, %(until)s)
        ) AS counted
    GROUP BY 1, 2, 3
"""
