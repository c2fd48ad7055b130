"""A receiver breaks during an import: support finds the failed group, replays one delivery, then the rest."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.services import SUPPORT, Service, Workspace
from tests.browser.walks import main_text, reload_until
from tests.journeys.waiting import wait_until

CONTACTS = 150
MOST_SECONDS = 60
WAYS = pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])


@pytest.fixture
def failed(service: Service, workspace: Workspace) -> int:
    """How many deliveries failed because the receiver broke after a third of an import. It works again."""
    hook = f"/{workspace.id}"
    workspace.caller().apply("POST", "webhooks/endpoints", {"address": service.receiver.url(hook), "events": ["*"]})
    counts = service.receiver.counts
    service.receiver.behaviour = lambda path, _: 503 if path == hook and counts[hook] > CONTACTS / 3 else 200
    lines = "\n".join(f'{{"email": "customer.{each}@example.com"}}' for each in range(CONTACTS)).encode()
    kind = {"Content-Type": "application/x-ndjson"}
    assert workspace.caller().call("POST", "contacts/import", lines, kind).status == 202
    wait_until(lambda: ended(service, workspace, "delivered", "failed") >= CONTACTS, 120, "every delivery has ended")
    service.receiver.behaviour = None
    number = ended(service, workspace, "failed")
    counted = (
        "SELECT sum(final) FROM failure_minutes JOIN failure_groups g ON g.id = group_id WHERE g.workspace_id = %s"
    )
    wait_until(lambda: service.query(counted, workspace.id) == [(number,)], 60, "the failures are counted")
    return number


def ended(service: Service, workspace: Workspace, *states: str) -> int:
    count = "SELECT count(*) FROM deliveries WHERE workspace_id = %s AND status = ANY(%s)"
    return int(service.query(count, workspace.id, list(states))[0][0])


@WAYS
def test_support_finds_the_group_and_replays_one_then_the_rest_within_a_minute(
    service: Service,
    visit: Visit,
    workspace: Workspace,
    failed: int,
    script: bool,
    report: Callable[[str], None],
) -> None:
    assert failed > CONTACTS / 3
    page = visit(SUPPORT, java_script_enabled=script).page
    main = page.get_by_role("main")

    began = time.monotonic()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Failures").click()
    main.get_by_role("row").filter(has_text=workspace.name).get_by_role("link", name="Replay").click()
    begin_visit(page)
    main.get_by_role("button", name=re.compile(f"Replay {failed} deliveries")).click()
    see(page, script, "It has arrived")
    assert ended(service, workspace, "failed") == failed - 1
    main.get_by_role("button", name="Send the rest").click()
    see(page, script, re.compile(rf"done\s+{failed} sent again \(.*\), 0 skipped"))
    took = time.monotonic() - began

    wait_until(lambda: ended(service, workspace, "failed", "pending") == 0, 60, "everything has arrived")
    report(f"{failed} deliveries replayed in {took:.1f} s of clicks")
    assert took < MOST_SECONDS


def begin_visit(page: Page) -> None:
    aside = page.get_by_role("complementary", name="Support visit")
    aside.get_by_text("say why").click()
    aside.get_by_label("Reason").fill("The receiver was away during an import")
    aside.get_by_label("Ticket number").fill("T-4711")
    aside.get_by_role("button", name="Begin a visit").click()
    expect(page.get_by_role("complementary", name="Support visit")).to_contain_text("T-4711")


def see(page: Page, script: bool, text: str | re.Pattern[str]) -> None:
    """Waits for the text, which comes by itself with the script and by reloading without."""
    if script:
        expect(page.get_by_role("main")).to_contain_text(text)
    else:
        reload_until(page, lambda: re.search(text, main_text(page)))


def test_what_support_did_is_in_the_audit_log_with_reason_and_ticket(
    visit: Visit, workspace: Workspace, failed: int
) -> None:
    page = visit(SUPPORT).page
    page.goto(workspace.path("dashboard/replays/new?status=failed"))
    begin_visit(page)
    page.get_by_role("button", name=re.compile("Replay .* deliveries")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Replay of")

    owner = visit(workspace.email("owner")).page
    owner.goto(workspace.path("settings/audit"))

    row = owner.get_by_role("row").filter(has_text="created the replay").first
    expect(row).to_contain_text("T-4711")
    expect(row).to_contain_text("The receiver was away")
