"""What people do at the pages, with the script and without it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.services import PASSWORD, SUPPORT, Service, Workspace
from tests.journeys.waiting import wait_until

WAYS = pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])
SEEN_SECONDS = 30


@WAYS
def test_who_signs_in_gets_where_they_wanted_and_out_again(visit: Visit, workspace: Workspace, script: bool) -> None:
    page = visit(java_script_enabled=script).page
    page.goto(workspace.path("dashboard/deliveries?status=failed"))
    page.get_by_label("E-mail").fill(workspace.email("owner"))
    page.get_by_label("Password").fill("a wrong password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("E-mail")).to_have_value(workspace.email("owner"))

    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()

    expect(page).to_have_url(re.compile(r"/dashboard/deliveries\?status=failed$"))
    page.locator("header summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/sign-in"))
    page.go_back()
    page.goto(workspace.path())
    expect(page).to_have_url(re.compile("/sign-in"))


@WAYS
def test_an_endpoint_is_created_and_its_secret_shown_once(
    service: Service, visit: Visit, workspace: Workspace, script: bool
) -> None:
    page = visit(workspace.email("admin"), java_script_enabled=script).page
    page.goto(workspace.path("settings/developers/endpoints"))
    page.get_by_role("link", name=re.compile("(New|Add|Create).*endpoint", re.I)).first.click()
    page.get_by_label("Address").fill("ftp://no.example")
    send = page.get_by_role("main").get_by_role("button", name=re.compile("(Create|Add|Save)", re.I))
    send.click()
    expect(page.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Address")).to_have_value("ftp://no.example")
    page.get_by_label("Address").fill(service.receiver.url(f"/{workspace.id}"))
    if (everything := page.get_by_label(re.compile("(all|every)", re.I)).first).is_visible():
        everything.check()
    send.click()

    expect(page.get_by_role("main")).to_contain_text(re.compile(r"whsec_\w{20,}"))
    page.reload()
    expect(page.get_by_role("main")).not_to_contain_text(re.compile(r"whsec_\w{20,}"))
    workspace.caller().apply("POST", "contacts", {"email": "ada@example.com"})
    assert service.receiver.wait_for(lambda receiver: receiver.counts[f"/{workspace.id}"] >= 1)


@WAYS
def test_a_token_is_created_used_and_revoked(visit: Visit, workspace: Workspace, script: bool) -> None:
    page = visit(workspace.email("owner"), java_script_enabled=script).page
    page.goto(workspace.path("settings/developers/tokens"))
    page.get_by_label("Name").first.fill("Warehouse")
    page.get_by_role("main").get_by_role("button", name=re.compile("Create", re.I)).first.click()

    found = re.search(r"bhp_\w+", page.get_by_role("main").inner_text())
    assert found
    answer = page.request.get("/api/v1/auth/me", headers={"Authorization": f"Bearer {found[0]}"})
    assert answer.json()["data"]["token"]["name"] == "Warehouse"
    page.goto(workspace.path("settings/developers/tokens"))
    expect(page.get_by_role("main")).not_to_contain_text(found[0])
    row = page.get_by_role("row").filter(has_text="Warehouse")
    row.get_by_text("Revoke").first.click()
    row.get_by_role("button", name=re.compile("Revoke")).last.click()

    answer = page.request.get("/api/v1/auth/me", headers={"Authorization": f"Bearer {found[0]}"})
    assert answer.status == 401


@WAYS
def test_a_wrong_webhook_is_explained(visit: Visit, workspace: Workspace, script: bool) -> None:
    page = visit(workspace.email("agent"), java_script_enabled=script).page

    page.goto(workspace.path("settings/developers/verify"))

    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("verify", re.I))


def failed(service: Service, workspace: Workspace) -> int:
    count = "SELECT count(*) FROM deliveries WHERE workspace_id = %s AND status = 'failed'"
    return int(service.query(count, workspace.id)[0][0])


def import_contacts(workspace: Workspace, number: int) -> None:
    lines = "\n".join(f'{{"email": "customer.{each}@example.com"}}' for each in range(number))
    kind = {"Content-Type": "application/x-ndjson"}
    assert workspace.caller().call("POST", "contacts/import", lines.encode(), kind).status == 202


def break_during_import(service: Service, workspace: Workspace, number: int) -> int:
    """A receiver answers 503 after a third of an import; returns how many deliveries have failed in the end."""
    hook = f"/{workspace.id}"
    workspace.caller().apply("POST", "webhooks/endpoints", {"address": service.receiver.url(hook), "events": ["*"]})
    service.receiver.behaviour = lambda path, _: (
        503 if path == hook and service.receiver.counts[hook] > number / 3 else 200
    )
    import_contacts(workspace, number)
    unfinished = "SELECT count(*) FROM deliveries WHERE workspace_id = %s AND status IN ('pending', 'held')"
    everything = "SELECT count(*) FROM deliveries WHERE workspace_id = %s"
    wait_until(
        lambda: (
            service.query(everything, workspace.id)[0][0] >= number
            and service.query(unfinished, workspace.id) == [(0,)]
        ),
        120,
        "every delivery has ended",
    )
    service.receiver.behaviour = None
    return failed(service, workspace)


def test_support_is_the_only_one_who_sees_all_workspaces(visit: Visit, workspace: Workspace) -> None:
    support = visit(SUPPORT).page
    support.goto("/dashboard/workspaces")
    expect(support.get_by_role("main")).to_contain_text(workspace.name)

    member = visit(workspace.email("owner")).page
    answer = member.goto("/dashboard/workspaces")

    assert answer is not None
    assert answer.status == 404
