"""Times in the zone of the reader: in rows, on hover, and in filters."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from playwright.sync_api import expect

from app.lib import clock
from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace

TOKYO = timedelta(hours=9)


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


def _field(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M")
