"""Accessibility of every page: axe-core, focus, zoom, motion; and nothing moves while a page loads."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import TOOLS, seeds
from tests.browser.services import Service, Workspace
from tests.browser.walks import walk

AXE = (TOOLS / "node_modules" / "axe-core" / "axe.min.js").read_text()
GRAVE = ("serious", "critical")
SHIFT = 0.02
# The elements that a key can reach, and whether one can see that it did.
INVISIBLE_FOCUS = """() => [
        ...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && each.type !== "hidden")
    .slice(0, 150)
    .filter((each) => {
        each.focus();
        const style = getComputedStyle(each);
        return document.activeElement === each && (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2);
    })
    .map((each) => each.outerHTML.slice(0, 100))"""
MOVING = """() => [...document.querySelectorAll("*")].filter((each) => {
    const style = getComputedStyle(each);
    return parseFloat(style.transitionDuration) > 0 || parseFloat(style.animationDuration) > 0;
}).map((each) => each.outerHTML.slice(0, 100))"""
SHIFTS = """() => new Promise((resolve) => {
    const seen = [];
    const observer = new PerformanceObserver((list) => seen.push(...list.getEntries()));
    observer.observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => {
        seen.push(...observer.takeRecords());
        resolve(seen.reduce((sum, each) => sum + each.value, 0));
    }));
})"""


@pytest.fixture(scope="module")
def usual(service: Service) -> Workspace:
    return seeds.usual(service)


@pytest.fixture(scope="module")
def huge(service: Service) -> Workspace:
    return seeds.huge(service)


def faults(page: Page, **options: object) -> list[str]:
    """What axe-core says is serious or critical; `options` are those of its `run`."""
    page.evaluate(AXE)
    found: dict[str, Any] = page.evaluate(
        "(options) => axe.run(document, {resultTypes: ['violations'], ...options})", options
    )
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:150]} {' '.join(node['failureSummary'].split())[:200]}"
        for each in found["violations"]
        if each["impact"] in GRAVE
        for node in each["nodes"][:3]
    ]


def test_axe_finds_nothing_serious_on_any_page(
    service: Service, browser: Browser, usual: Workspace, subtests: pytest.Subtests
) -> None:
    for address, page in walk(service, browser, usual, color_scheme="light", reduced_motion="reduce"):
        with subtests.test(address.name):
            open_everything(page)
            assert faults(page) == []
            page.emulate_media(color_scheme="dark")
            assert faults(page, runOnly=["color-contrast"]) == []
            page.emulate_media(color_scheme="light")


def test_axe_finds_nothing_serious_on_pages_of_an_empty_workspace(
    service: Service, browser: Browser, workspace: Workspace, subtests: pytest.Subtests
) -> None:
    for address, page in walk(service, browser, workspace):
        with subtests.test(address.name):
            assert faults(page) == []


def open_everything(page: Page) -> None:
    """Opens what is folded."""
    page.evaluate("() => document.querySelectorAll('main details').forEach((each) => (each.open = true))")


@pytest.mark.parametrize("kind", ["usual", "huge"])
def test_at_twice_the_size_nothing_is_cut_off_or_scrolled_sideways(
    service: Service, browser: Browser, kind: str, request: pytest.FixtureRequest, subtests: pytest.Subtests
) -> None:
    # 1280 pixels at 200 % are 640 of twice the density.
    zoomed = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
    for address, page in walk(service, browser, request.getfixturevalue(kind), **zoomed):
        with subtests.test(address.name):
            assert width(page) <= 640
            page.set_viewport_size({"width": 390, "height": 800})
            assert width(page) <= 390
            page.set_viewport_size({"width": 640, "height": 400})


def width(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


def test_the_focus_can_be_seen_and_nothing_moves(
    service: Service, browser: Browser, usual: Workspace, subtests: pytest.Subtests
) -> None:
    for address, page in walk(service, browser, usual, reduced_motion="reduce"):
        with subtests.test(address.name):
            page.keyboard.press("Tab")
            assert page.evaluate(INVISIBLE_FOCUS) == []
            assert page.evaluate(MOVING) == []


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_shifts_while_a_page_loads(
    service: Service, browser: Browser, usual: Workspace, width: int, subtests: pytest.Subtests
) -> None:
    viewport = {"width": width, "height": 900}
    # Of a zone other than the server's, so that the script has times to change.
    for address, page in walk(service, browser, usual, viewport=viewport, timezone_id="America/New_York"):
        with subtests.test(address.name):
            assert page.evaluate(SHIFTS) <= SHIFT


def test_every_page_has_one_heading_a_title_and_a_main_part(
    service: Service, browser: Browser, usual: Workspace, subtests: pytest.Subtests
) -> None:
    titles: dict[str, str] = {}
    for address, page in walk(service, browser, usual):
        with subtests.test(address.name):
            assert page.get_by_role("heading", level=1).count() == 1
            assert page.get_by_role("main").count() == 1
            place = page.url.partition("?")[0]
            assert titles.setdefault(page.title(), place) == place
