"""The list of workspaces, for staff."""

from __future__ import annotations

import re

import pytest

from app.database import rows
from app.models import workspaces
from app.web import lists
from tests.app.web.counting import counted_statements
from tests.cast import Api
from tests.figures import ago, attempted, counted
from tests.pages import Person


def names(page: str) -> list[str]:
    return re.findall(r'<a href="/workspaces/ws_\w+/dashboard" dir="auto">([^<]+)</a>', page)


@pytest.mark.usefixtures("without_lag")
def test_workspaces_are_listed_with_what_they_did(support: Person, api: Api, others: Api) -> None:
    attempted(api.workspace_id, "whe_1", ago(hours=1), times=7)
    attempted(api.workspace_id, "whe_1", ago(hours=1), "status", 500, times=2)
    counted()

    page = support.page("/dashboard/workspaces")

    assert names(page) == ["Theirs", "Ours"]
    assert re.findall(r'<td class="number">(?:<a [^>]+>)?(\d+)', page) == ["0", "0", "9", "2"]


def test_workspaces_are_found_by_a_part_of_their_name(support: Person, api: Api, others: Api) -> None:
    assert names(support.page("/dashboard/workspaces?q=our")) == ["Ours"]
    assert names(support.page("/dashboard/workspaces?q=%25")) == []
    assert "No workspace has this in its name" in support.page("/dashboard/workspaces?q=nothing")


def test_a_long_list_has_pages(support: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "ROWS", 2)
    rows(
        "INSERT INTO workspaces (id, name) SELECT 'ws_0000000000000000000000000' || n, 'Shop ' || n"
        " FROM generate_series(1, 4) AS n"
    )

    seen, address = [], "/dashboard/workspaces?q=shop"
    while address:
        page = support.page(address)
        seen += names(page)
        following = re.search(r'rel="next" href="([^"]+)"', page)
        address = following[1] if following else ""

    assert seen == ["Shop 4", "Shop 3", "Shop 2", "Shop 1"]


def test_a_search_looks_at_a_limited_number(support: Person, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "MOST_SEARCHED", 1)

    assert names(support.page("/dashboard/workspaces?q=rs")) == ["Theirs"]


def test_members_see_no_list(owner: Person) -> None:
    assert owner.get("/dashboard/workspaces").status_code == 404


def test_the_list_is_a_file_too(support: Person, api: Api) -> None:
    assert [each["name"] for each in support.get("/dashboard/workspaces?format=json").json] == ["Ours"]
    assert "Ours" in support.get("/dashboard/workspaces?format=csv").text


def test_the_page_takes_few_statements(support: Person, others: Api) -> None:
    with counted_statements() as statements:
        support.page("/dashboard/workspaces?q=rs")

    assert len(statements) <= 4
