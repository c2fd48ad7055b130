"""What people do at the pages, with the script and without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.services import PASSWORD, SUPPORT, Service, Workspace
from tests.browser.walks import main_text, reload_until
from tests.cast import until

WAYS = pytest.mark.parametrize("script", [True, False], ids=["with the script", "without it"])


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
    main = page.get_by_role("main")
    page.goto(workspace.path("settings/developers/endpoints"))
    main.get_by_role("link", name="Create an endpoint").first.click()
    main.get_by_label("Address").fill("ftp://no.example")
    main.get_by_label("All, including future ones").check()
    main.get_by_role("button", name="Create the endpoint").click()
    expect(main.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    expect(main.get_by_label("Address")).to_have_value("ftp://no.example")
    main.get_by_label("Address").fill(service.receiver.url(f"/{workspace.id}"))
    main.get_by_role("button", name="Create the endpoint").click()

    expect(main).to_contain_text(re.compile(r"whsec_[\w-]{20,}"))
    main.get_by_role("link", name="To the endpoint").click()
    expect(main).not_to_contain_text("whsec_")
    workspace.caller().apply("POST", "contacts", {"email": "ada@example.com"})
    assert service.receiver.wait_for(lambda receiver: receiver.counts[f"/{workspace.id}"] >= 1)


@WAYS
def test_a_token_is_created_used_and_revoked(visit: Visit, workspace: Workspace, script: bool) -> None:
    page = visit(workspace.email("owner"), java_script_enabled=script).page
    main = page.get_by_role("main")
    page.goto(workspace.path("settings/developers/tokens"))
    main.get_by_role("link", name="Create a token").click()
    main.get_by_label("Name").fill("Warehouse")
    main.get_by_role("button", name="Create the token").click()

    expect(page.get_by_role("heading", name="Your token")).to_be_visible()
    found = re.search(r"bhp_\w+", main.inner_text())
    assert found
    headers = {"Authorization": f"Bearer {found[0]}"}
    assert page.request.get("/api/v1/auth/me", headers=headers).json()["data"]["token"]["name"] == "Warehouse"
    main.get_by_role("link", name="To the tokens").click()
    expect(main).not_to_contain_text(found[0])
    row = page.get_by_role("row").filter(has_text="Warehouse")
    row.get_by_text("Revoke", exact=True).click()
    row.get_by_role("button", name="Revoke the token").click()

    expect(page.get_by_role("row").filter(has_text="Warehouse")).to_contain_text("revoked")
    # Every process refuses it within a second.
    until(lambda: page.request.get("/api/v1/auth/me", headers=headers).status == 401)


@WAYS
def test_a_wrong_secret_is_found_by_pasting_a_webhook(
    service: Service, visit: Visit, workspace: Workspace, script: bool
) -> None:
    hook = f"/{workspace.id}"
    workspace.caller().apply("POST", "webhooks/endpoints", {"address": service.receiver.url(hook), "events": ["*"]})
    workspace.caller().apply("POST", "contacts", {"email": "ada@example.com"})
    assert service.receiver.wait_for(lambda receiver: receiver.counts[hook] >= 1)
    [received] = [each for each in service.receiver.received if each.path == hook]
    page = visit(workspace.email("agent"), java_script_enabled=script).page
    page.goto(workspace.path("settings/developers/verify"))
    sent = {name: received.headers[name] for name in ("X-Service-Signature", "X-Service-Delivery")}
    page.get_by_label("Headers").fill("\n".join(f"{name}: {value}" for name, value in sent.items()))
    page.get_by_label("Body").fill(received.body.decode().replace("ada@", "eve@"))
    page.get_by_role("main").get_by_role("button", name="Verify").click()

    expect(page.get_by_role("main").get_by_role("status")).to_contain_text("differs")


@WAYS
def test_contacts_are_imported_and_bad_lines_listed(
    visit: Visit, workspace: Workspace, tmp_path: Path, script: bool
) -> None:
    table = tmp_path / "contacts.csv"
    table.write_text("email,first_name\nada@example.com,Ada\nno address,Eve\n")
    page = visit(workspace.email("admin"), java_script_enabled=script).page
    page.goto(workspace.path("contacts/import"))
    page.get_by_label("File").set_input_files(table)
    page.get_by_role("main").get_by_role("button", name="Import").click()

    reload_until(page, lambda: "This is not an e-mail address" in main_text(page))
    page.goto(workspace.path("contacts"))
    reload_until(page, lambda: "ada@example.com" in main_text(page))  # the bad line may be known before


def test_support_is_the_only_one_who_sees_all_workspaces(visit: Visit, workspace: Workspace) -> None:
    support = visit(SUPPORT).page
    support.goto("/dashboard/workspaces")
    expect(support.get_by_role("main")).to_contain_text(workspace.name)

    member = visit(workspace.email("owner")).page
    answer = member.goto("/dashboard/workspaces")

    assert answer is not None
    assert answer.status == 404
