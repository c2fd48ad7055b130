"""A run that failed, from the list of automations to its next try."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.browser import seeds
from tests.browser.services import Service
from tests.browser.visitors import visiting
from tests.definitions import welcome


def test_runs_that_failed_are_found_in_the_picture_and_run_again(service: Service, browser: Browser) -> None:
    workspace = service.open("Picture shop")
    caller = workspace.caller()
    automation = seeds.make_automation(caller, "Welcome new customers", welcome())
    names = ("Ada", "Grace", "Mary")
    contacts = [
        caller.apply("POST", "contacts", {"external_id": name, "first_name": name}).data["id"] for name in names
    ]
    for contact_id in contacts:
        caller.apply("POST", f"automations/{automation}/start", {"contact_id": contact_id})
    with visiting(browser, service.base_url, viewport={"width": 1440, "height": 900}) as visitor:
        page = visitor.sign_in(workspace.email("agent")).page
        page.goto(workspace.path("automations"))
        page.get_by_role("link", name="Welcome new customers").click()
        page.wait_for_url("**/aut_*")

        # Nobody can be written to; the counts come by themselves.
        canvas = page.locator(".canvas")
        failed = canvas.get_by_role("link", name="3 failed")
        expect(failed).to_be_visible(timeout=60_000)
        place = canvas.evaluate("each => { each.scrollTo(40, 60); return [each.scrollLeft, each.scrollTop]; }")
        assert place[1] > 0
        caller.apply("POST", f"automations/{automation}/start", {"contact_id": contacts[0]})
        failed = canvas.get_by_role("link", name="4 failed")
        expect(failed).to_be_visible(timeout=60_000)
        assert canvas.evaluate("each => [each.scrollLeft, each.scrollTop]") == place
        failed.click()
        expect(page.get_by_text("4 runs", exact=True)).to_be_visible()
        page.locator("table[data-rows] a").first.click()
        expect(page).to_have_url(re.compile("/runs/run_"))
        page.reload()
        expect(page.get_by_role("heading", name="Run of Welcome new customers")).to_be_visible()
        expect(page.locator(".canvas .step.bad.marked")).to_contain_text("Failed")
        expect(page.locator(".canvas .edges.gone path")).not_to_have_count(0)  # a line has no width
        first = page.url

        page.get_by_role("button", name="Run it again").click()
        expect(page.get_by_text("A new run has begun.")).to_be_visible()
        assert page.url != first
        expect(page.get_by_text(re.compile("which it replays"))).to_be_visible()

        page.goto(workspace.path(f"automations/{automation}"))
        expect(page.locator(".canvas").get_by_role("link", name="5 failed")).to_be_visible(timeout=60_000)
        page.get_by_role("button", name="Larger").click()
        expect(page.locator("[data-zoom=reset]")).to_have_text("120 %")
        page.get_by_role("link", name="List", exact=True).click()
        expect(page.locator(".outline-view").get_by_text("If the contact has the tag").first).to_be_visible()


def test_the_picture_needs_no_script_and_a_phone_shows_the_list(service: Service, browser: Browser) -> None:
    workspace = service.open("Phone shop")
    automation = seeds.make_automation(workspace.caller(), "Welcome", welcome())
    with visiting(
        browser, service.base_url, viewport={"width": 390, "height": 800}, java_script_enabled=False
    ) as visitor:
        page = visitor.sign_in(workspace.email("owner")).page
        page.goto(workspace.path(f"automations/{automation}"))

        expect(page.locator(".outline-view")).to_be_visible()
        expect(page.locator(".canvas")).to_be_hidden()
        page.get_by_role("link", name="Picture", exact=True).last.click()
        expect(page.locator(".canvas")).to_be_visible()
        page.get_by_role("link", name="Fold all", exact=True).click()
        expect(page.locator(".canvas").get_by_text("Which flowers do you like best?")).to_have_count(0)
        page.locator(".canvas").get_by_role("link", name=re.compile("Show 5 steps")).click()
        expect(page.locator(".canvas").get_by_text("Which flowers do you like best?")).to_have_count(1)
