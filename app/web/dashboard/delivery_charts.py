"""Charts of attempts and latency over time, for an endpoint, a workspace or all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from app.domain.insight.trends import Attempts, Window
from app.web import charts
from app.web.charts import Chart, Series
from app.web.formats import duration, number


def of(window: Window, attempts: Sequence[Attempts]) -> list[Chart]:
    """Returns the charts of attempts and latency in each step of the window."""
    steps = [each.starts_at for each in attempts]
    return [
        charts.chart(
            "attempts",
            f"Attempts per {step(window)}",
            steps,
            [
                Series("delivered", [each.delivered for each in attempts]),
                Series("failed", [each.failed for each in attempts], is_bad=True),
            ],
            number,
        ),
        charts.chart(
            "latency",
            "Time that answers take",
            steps,
            [
                Series("half of the answers", [each.percentile_ms(0.5) for each in attempts]),
                Series("95 %", [each.percentile_ms(0.95) for each in attempts], is_bad=True),
            ],
            duration,
        ),
    ]


def step(window: Window) -> str:
    """Returns the length of the window's steps in words: "minute", "hour" or "6 hours"."""
    minutes = window.step // timedelta(minutes=1)
    return {1: "minute", 60: "hour"}.get(minutes, f"{minutes // 60} hours")
