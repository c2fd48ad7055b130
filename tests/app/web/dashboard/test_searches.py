"""The search box."""

from __future__ import annotations

import html

from app.database import rows
from tests.cast import Api
from tests.pages import Person


def test_an_identifier_leads_straight_to_its_page(owner: Person, support: Person, api: Api) -> None:
    endpoint_id = api.endpoint()
    place = f"/workspaces/{api.workspace_id}/dashboard/endpoints/{endpoint_id}"

    for person, path in ((owner, "dashboard/search"), (support, "/dashboard/search"), (support, "dashboard/search")):
        answer = person.get(f"{path}?q=%20{endpoint_id}")
        assert (answer.status_code, answer.location) == (303, place)


def test_what_else_is_found_is_named(owner: Person, api: Api) -> None:
    contact_id = api.contact(email="ada@example.com", first_name="<i>Ada</i>")["id"]

    page = owner.page("dashboard/search?q=ADA@example.com")

    assert "Contact" in page
    assert "e-mail address" in page
    assert f"/workspaces/{api.workspace_id}/contacts/{contact_id}" in page
    assert "<i>Ada" not in owner.get("dashboard/search?q=ADA@example.com").text


def test_what_is_not_there_says_where_else_to_look(owner: Person, support: Person) -> None:
    page = owner.page("dashboard/search?q=nobody@example.com")

    assert "Nothing found" in page
    assert "/contacts?q=nobody" in page
    assert "search all workspaces" not in page
    assert "search all workspaces" in support.page("dashboard/search?q=nobody@example.com")
    assert "No workspace has" in support.page("/dashboard/search?q=nobody@example.com")


def test_an_empty_search_says_what_can_be_entered(owner: Person) -> None:
    assert "Enter the identifier" in owner.page("dashboard/search")
    assert "Enter the identifier" in owner.page("dashboard/search?q=%20")


def test_hostile_text_is_text(owner: Person) -> None:
    text = "\"><script>alert(1)</script>'"

    answer = owner.get("dashboard/search", query_string={"q": text})

    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert html.escape("<script>alert(1)</script>") in answer.text
    assert owner.get("dashboard/search?q=%00").status_code == 200
    assert owner.get("dashboard/search?q=%ff").status_code == 200


def test_another_workspace_is_not_searched(stranger: Person, owner: Person, api: Api, others: Api) -> None:
    endpoint_id = others.endpoint()

    assert stranger.get("dashboard/search?q=x").status_code == 404
    assert owner.get("/dashboard/search?q=x").status_code == 404
    assert "Nothing found" in owner.page(f"dashboard/search?q={endpoint_id}")


def test_a_sale_without_its_contact_has_no_link(owner: Person, api: Api) -> None:
    sale = api.sale(api.contact(external_id="ada")["id"])
    rows("UPDATE sales SET contact_id = NULL")

    assert "It no longer has a page." in owner.page(f"dashboard/search?q={sale['id']}")
