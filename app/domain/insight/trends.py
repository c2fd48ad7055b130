"""Trends: figures over time, in windows of an hour to thirty days."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from app.database import now, replica, rows
from app.domain.insight.figures import BOUNDS_MS

_EPOCH = "timestamptz '2000-01-01 00:00:00+00'"
_SUMS = ", ".join(f"sum(buckets[{number}])" for number in range(1, len(BOUNDS_MS) + 2))


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time up to now, in steps.

    `grain`: the table of figures to read, `minutes` or `hours`. Every step begins at a whole minute or hour.
    """

    name: str
    title: str
    length: timedelta
    step: timedelta
    grain: str

    def since(self, at: datetime) -> datetime:
        """Returns the start of the first step, for a window that contains `at` in its last step."""
        return at - (at - datetime(2000, 1, 1, tzinfo=at.tzinfo)) % self.step - self.length

    def steps(self, at: datetime) -> list[datetime]:
        """Returns when each step begins, the current one included."""
        since = self.since(at)
        return [since + number * self.step for number in range(self.length // self.step + 1)]


WINDOWS: Mapping[str, Window] = {
    window.name: window
    for window in (
        Window("1h", "1 hour", timedelta(hours=1), timedelta(minutes=1), "minutes"),
        Window("24h", "24 hours", timedelta(hours=24), timedelta(hours=1), "hours"),
        Window("7d", "7 days", timedelta(days=7), timedelta(hours=3), "hours"),
        Window("30d", "30 days", timedelta(days=30), timedelta(hours=12), "hours"),
    )
}
DEFAULT = WINDOWS["24h"]
# Steps of a custom range: the first that divides it into at most MOST_STEPS. The minutes of thirty days would be read
# from 43,200 rows for each cause.
MOST_STEPS = 75
_STEPS = (
    *((timedelta(minutes=minutes), "minutes") for minutes in (1, 5)),
    *((timedelta(hours=hours), "hours") for hours in (1, 3, 12)),
)


def between(since: datetime, until: datetime) -> tuple[Window, datetime]:
    """Returns a window of all steps between `since` and `until`, and a time in its last step.

    `until` is later than `since`. If the range is longer than figures are kept, the window covers only its end.
    """
    since = max(since, until - WINDOWS["30d"].length)
    for step, grain in _STEPS:
        window = Window("own", "this time", timedelta(0), step, grain)
        first, last = window.since(since), window.since(until - timedelta(microseconds=1))
        if (last - first) // step < MOST_STEPS:
            break
    return replace(window, length=last - first), last


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts in one step of time. `final`: how many were the last attempt of a failed delivery.

    `buckets`: how many attempts got an answer, by duration.
    """

    starts_at: datetime
    attempts: int
    delivered: int
    final: int
    duration_ms: int
    buckets: Sequence[int]

    @property
    def failed(self) -> int:
        """Returns the number of attempts that did not deliver."""
        return self.attempts - self.delivered

    def percentile_ms(self, share: float) -> float | None:
        """Estimates the duration that `share` of the answers did not exceed; None without answers.

        Interpolates within the bucket. Durations beyond the last bound count as that bound.
        """
        below, wanted = 0, share * sum(self.buckets)
        lower = 0
        for number, upper in zip(self.buckets, (*BOUNDS_MS, BOUNDS_MS[-1]), strict=True):
            if number and below + number >= wanted:
                return lower + (upper - lower) * (wanted - below) / number
            below, lower = below + number, upper
        return None


@dataclass(frozen=True, slots=True)
class Writes:
    """Writes accepted in a step: how many, and how many had succeeded and failed minutes later."""

    starts_at: datetime
    accepted: int
    succeeded: int
    failed: int


@replica.may_read
def attempts(
    window: Window, workspace_id: str = "", endpoint_id: str = "", at: datetime | None = None
) -> list[Attempts]:
    """Returns the attempts of an endpoint, a workspace or all, per step; the last step is not over."""
    at = at or now()
    found = {
        starts_at: Attempts(starts_at, *counted)
        for starts_at, *counted in rows(
            f"""
            SELECT date_bin(%s, starts_at, {_EPOCH}) AS step, sum(attempts)::int, sum(delivered)::int, sum(final)::int,
                sum(duration_ms)::bigint, ARRAY[{_SUMS}]::int[]
            FROM delivery_{window.grain}
            WHERE workspace_id = %s AND endpoint_id = %s AND starts_at >= %s GROUP BY step
            """,
            (window.step, workspace_id, endpoint_id, window.since(at)),
        )
    }
    nothing = (0, 0, 0, 0, [0] * (len(BOUNDS_MS) + 1))
    return [found.get(step) or Attempts(step, *nothing) for step in window.steps(at)]


def attempts_of_workspaces(workspace_ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """Returns the attempts and failed attempts of the last day for each workspace that had any."""
    return _within_a_day("workspace_id", "workspace_id = ANY(%s) AND endpoint_id = ''", (list(workspace_ids),))


def attempts_of_endpoints(workspace_id: str, endpoint_ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """Like `attempts_of_workspaces`, for endpoints of one workspace."""
    chosen = (workspace_id, list(endpoint_ids))
    return _within_a_day("endpoint_id", "workspace_id = %s AND endpoint_id = ANY(%s)", chosen)


def total(counted: Sequence[Attempts]) -> Attempts:
    """Returns the sum of the steps; at least one must be given."""
    return Attempts(
        counted[0].starts_at,
        sum(each.attempts for each in counted),
        sum(each.delivered for each in counted),
        sum(each.final for each in counted),
        sum(each.duration_ms for each in counted),
        [sum(numbers) for numbers in zip(*(each.buckets for each in counted), strict=True)],
    )


@replica.may_read
def writes(window: Window, workspace_id: str = "", at: datetime | None = None) -> list[Writes]:
    """Returns the writes of a workspace or of all, per step of the window; the last step is not over."""
    at = at or now()
    found = {
        starts_at: Writes(starts_at, *counted)
        for starts_at, *counted in rows(
            f"""
            SELECT date_bin(%s, starts_at, {_EPOCH}) AS step, sum(accepted)::int, sum(succeeded)::int, sum(failed)::int
            FROM job_minutes WHERE workspace_id = %s AND starts_at >= %s GROUP BY step
            """,
            (window.step, workspace_id, window.since(at)),
        )
    }
    return [found.get(step) or Writes(step, 0, 0, 0) for step in window.steps(at)]


@replica.may_read
def _within_a_day(column: str, condition: str, chosen: Sequence[Any]) -> dict[str, tuple[int, int]]:
    query = f"""
        SELECT {column}, sum(attempts)::int, sum(attempts - delivered)::int FROM delivery_hours
        WHERE {condition} AND starts_at >= %s GROUP BY {column}
    """
    found = rows(query, (*chosen, WINDOWS["24h"].since(now())))
    return {id: (made, failed) for id, made, failed in found}
