"""Times in the zone of the reader: in rows, on hover, in filters, and below charts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from app.lib import clock
from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace

TOKYO = timedelta(hours=9)
INDIA = timedelta(hours=5, minutes=30)
# The marks below the first chart: what each says, and the moment at which it stands.
MARKS = """() => {
    const axis = document.querySelector("svg [data-since]");
    const [since, until] = [Date.parse(axis.dataset.since), Date.parse(axis.dataset.until)];
    const { left, right } = axis.dataset;
    return [...axis.querySelectorAll("text")].map((each) => [
        each.textContent,
        new Date(since + (each.getAttribute("x") - left) * (until - since) / (right - left)).toISOString()]);
}"""


def test_a_filter_by_time_is_in_the_zone_of_the_rows(service: Service, visit: Visit, workspace: Workspace) -> None:
    seeds.make_endpoint(service, workspace, "orders")
    workspace.caller().apply("POST", "contacts", {"email": "ada@example.com"})
    page = visit(workspace.email("agent"), timezone_id="Asia/Tokyo").page
    page.goto(workspace.path("dashboard/deliveries"))
    rows = page.locator("table[data-rows] tbody tr")
    expect(rows).to_have_count(1)
    made = rows.locator("time").first
    expect(made).to_have_text(re.compile("now|ago"))
    expect(made).to_have_attribute("title", re.compile("GMT\\+9|Japan"))

    here = (clock.now() + TOKYO).replace(tzinfo=None)
    page.get_by_label("From").fill(_field(here - timedelta(hours=1)))
    page.get_by_label("Before").fill(_field(here + timedelta(hours=1)))
    page.get_by_role("button", name="Filter", exact=True).click()

    expect(page).to_have_url(re.compile(r"since=[^&]+Z"))
    expect(rows).to_have_count(1)
    expect(page.get_by_label("From")).to_have_value(re.compile(_field(here - timedelta(hours=1))))
    page.get_by_label("From").fill(_field(here + timedelta(minutes=30)))
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.get_by_text("No delivery matches these filters.")).to_be_visible()
    page.get_by_role("link", name="Without From").click()
    expect(rows).to_have_count(1)


def test_charts_are_marked_at_round_times_of_the_reader(service: Service, visit: Visit, workspace: Workspace) -> None:
    seeds.make_endpoint(service, workspace, "orders")
    page = visit(workspace.email("agent"), timezone_id="Asia/Kolkata", locale="en-GB").page
    for window, written, distance in (("1h", "%H:%M", 600), ("24h", "%H:%M", 14_400), ("7d", "%-d %b", 86_400)):
        page.goto(workspace.path(f"dashboard?window={window}"))
        expect(page.get_by_text("Times below the charts are in GMT+5:30.")).to_be_visible()
        marks = page.evaluate(MARKS)
        assert len(marks) > 4
        for label, moment in marks:
            # Its place is rounded to a tenth of a pixel, which is up to three minutes.
            seconds = round((datetime.fromisoformat(moment) + INDIA).timestamp() / 600) * 600
            assert seconds % distance == 0
            assert label == datetime.fromtimestamp(seconds, UTC).strftime(written)


def test_without_the_script_charts_say_that_they_are_in_utc(
    service: Service, visit: Visit, workspace: Workspace
) -> None:
    seeds.make_endpoint(service, workspace, "orders")
    page = visit(workspace.email("agent"), timezone_id="Asia/Kolkata", java_script_enabled=False).page
    page.goto(workspace.path("dashboard"))
    expect(page.get_by_text("Times below the charts are in UTC.")).to_be_visible()
    expect(page.locator("svg.chart").first.get_by_text("00:00").first).to_be_visible()


def _field(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M")
