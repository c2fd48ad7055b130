"""What support and admins do: a file whose columns have other names, and pages that refresh themselves."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.services import Workspace


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
    expect(main).to_contain_text("2 of 2", timeout=30_000)  # without a reload
    expect(main.get_by_role("row", name=re.compile("3 email"))).to_be_visible()
    page.goto(workspace.path("contacts?tag=vip"))
    main.get_by_role("row", name=re.compile("ada@example.com")).get_by_role("link").click()
    expect(main).to_contain_text("London")
