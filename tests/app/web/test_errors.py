"""Error pages."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from app.web.people import start
from tests.cast import database_away
from tests.pages import Person

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_wrong_address_gets_a_page_in_a_browser(owner: Person) -> None:
    answer = owner.get("/nowhere", headers=BROWSER)

    assert answer.status_code == 404
    assert answer.mimetype == "text/html"
    assert answer.headers["X-Request-Id"] in answer.text


def test_a_program_gets_a_problem(app: Flask) -> None:
    answer = app.test_client().get("/nowhere", headers={"Accept": "application/json"})

    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"
    assert answer.json["traceId"] == answer.headers["X-Request-Id"]


def test_a_surprise_tells_nothing_but_its_number(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(start, "render_template", fail)

    answer = owner.get("/workspaces", headers=BROWSER)

    assert answer.status_code == 500
    assert "a secret" not in answer.text
    assert answer.headers["X-Request-Id"] in answer.text


@pytest.mark.parametrize("path", ["/workspaces/{}/dashboard", "/workspaces/{}/contacts", "/account", "/nowhere"])
def test_while_the_database_is_away_a_page_says_so_and_when_to_come_back(owner: Person, path: str) -> None:
    owner.get("/account")
    with database_away():
        page = owner.get(path.format(owner.workspace_id), headers=BROWSER)
        program = owner.get(path.format(owner.workspace_id), headers={"Accept": "application/json"})

    assert (page.status_code, page.mimetype, page.headers["Retry-After"]) == (503, "text/html", "5")
    assert "The database cannot be reached" in page.text
    assert (program.status_code, program.mimetype) == (503, "application/problem+json")


def test_assets_need_no_database(owner: Person) -> None:
    page = owner.get("/account").text
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    with database_away():
        statuses = [owner.get(address).status_code for address in addresses]

    assert len(statuses) >= 2
    assert set(statuses) == {200}


def test_an_unknown_address_keeps_the_menu_of_the_workspace(owner: Person) -> None:
    page = owner.get(f"/workspaces/{owner.workspace_id}/nowhere", headers=BROWSER)

    assert page.status_code == 404
    assert f"/workspaces/{owner.workspace_id}/contacts" in page.text


def test_a_refusal_names_the_role_that_is_needed(agent: Person) -> None:
    page = agent.get(f"/workspaces/{agent.workspace_id}/settings/audit", headers=BROWSER)

    assert page.status_code == 403
    assert "This needs the role owner or admin in this workspace. Yours is agent." in page.text
    assert "Insufficient scope" not in page.text
