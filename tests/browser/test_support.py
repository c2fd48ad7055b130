"""What support and admins do: a file whose columns have other names, and pages that refresh themselves."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.services import PASSWORD, SUPPORT, Service, Workspace


def test_staff_help_in_any_workspace_by_a_visit_and_their_lead_reads_one_log(
    visit: Visit, service: Service, workspace: Workspace
) -> None:
    email = f"grace@{workspace.id.removeprefix('ws_')}.example"
    service.stack.command("support", "create", email, input=f"{PASSWORD}\n")
    made = service.stack.command("endpoint", "create", workspace.id, service.receiver.url("/lost"), "--events", "*")
    endpoint = made["endpoint"]["id"]
    grace = visit(email).page
    main, aside = grace.get_by_role("main"), grace.get_by_role("complementary", name="Support visit")
    settings = workspace.path(f"settings/developers/endpoints/{endpoint}/edit")

    grace.goto(settings)
    expect(aside).to_contain_text("You see this workspace as support.")
    aside.get_by_text("say why").click()
    aside.get_by_label("Reason").fill("They lost their secret")
    aside.get_by_label("Ticket number").fill("T-77")
    aside.get_by_role("button", name="Begin a visit").click()
    expect(aside).to_contain_text("T-77")
    main.get_by_label("Description").fill("Checked by support")
    main.get_by_role("button", name="Save").click()

    lead = visit(SUPPORT).page
    lead.goto("/dashboard")
    lead.get_by_role("navigation", name="Main").get_by_role("link", name="Audit log").click()
    expect(lead.get_by_role("heading", level=1)).to_have_text("Audit log of all workspaces")
    lead.get_by_label("E-mail of a person").fill(email)
    lead.get_by_role("button", name="Filter", exact=True).click()
    rows = lead.get_by_role("main").get_by_role("row")
    expect(rows.nth(1)).to_contain_text(f"Support, {email}, ticket T-77, changed the endpoint {endpoint}")
    expect(rows.nth(1)).to_contain_text(workspace.name)
    expect(rows).to_have_count(3)

    service.stack.command("support", "disable", email)
    grace.goto("/dashboard")
    expect(grace).to_have_url(re.compile("/sign-in"))


def test_columns_are_chosen_after_one_upload_and_the_import_is_watched(
    visit: Visit, workspace: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("E-Mail;Wohnort;Gruppe\nada@example.com;London;vip\nnobody;Berlin;\n")
    page = visit(workspace.email("owner")).page
    main = page.get_by_role("main")
    page.goto(workspace.path("contacts/import"))
    main.get_by_label("File").set_input_files(file)

    expect(main.get_by_label("Import E-Mail as")).to_have_value("email")
    expect(main.get_by_role("cell", name="London")).to_be_visible()
    main.get_by_label("Import Wohnort as").select_option("custom_field")
    main.get_by_label("Import Gruppe as").select_option("tags")
    main.get_by_role("button", name="Import", exact=True).click()

    expect(page).to_have_url(re.compile(r"/contacts/imports/imp_"))
    expect(main).to_contain_text("2 of 2")  # without a reload
    expect(main.get_by_role("row", name=re.compile("3 email"))).to_be_visible()
    page.goto(workspace.path("contacts?tag=vip"))
    main.get_by_role("row", name=re.compile("ada@example.com")).get_by_role("link").click()
    expect(main).to_contain_text("London")
