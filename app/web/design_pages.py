"""The page of all components in both colour schemes, for authors of pages. It has no real data."""

from __future__ import annotations

from datetime import timedelta

from flask import Blueprint, render_template

from app.lib import clock
from app.web import charts
from app.web.access import public
from app.web.charts import Series
from app.web.formats import number

blueprint = Blueprint("design_pages", __name__)


@blueprint.get("/design")
@public
def show() -> str:
    """Shows every component with made-up values."""
    now = clock.now()
    steps = [now - timedelta(hours=hours) for hours in range(24, -1, -1)]
    return render_template(
        "design.html",
        now=now,
        earlier=[now - timedelta(hours=hours) for hours in (1 / 12, 3, 24, 960)],
        chart_of=lambda scheme: charts.chart(
            f"chart-{scheme}",
            "A chart",
            steps,
            [
                Series("delivered", [(hour * 7) % 23 for hour in range(25)]),
                Series("failed", [(hour * 3) % 5 for hour in range(25)], is_bad=True),
            ],
            number,
        ),
    )
