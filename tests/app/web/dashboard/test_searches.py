"""The search box."""

from __future__ import annotations

import html

import pytest

from app.database import rows
from app.lib import ids
from tests import talks
from tests.app.web.counting import MOST_STATEMENTS, counted_statements
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
    assert "Search all workspaces" not in page
    assert "Search all workspaces" in support.page("dashboard/search?q=nobody@example.com")
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

    assert "It has no page." in owner.page(f"dashboard/search?q={sale['id']}")


@pytest.mark.parametrize("text", ["Claire Moreau", "moreau claire", "more clai", "MOREAU", "shop.example claire"])
def test_a_contact_is_found_by_parts_of_words_in_any_order(owner: Person, api: Api, text: str) -> None:
    contact_id = api.contact(first_name="Claire", last_name="Moreau", email="c@shop.example")["id"]
    api.contact(first_name="Claire", last_name="Lemaire", external_id="2")

    page = owner.page(f"dashboard/search?q={text}")

    assert f"/contacts/{contact_id}" in page
    assert "Lemaire" not in page


def test_a_message_is_found_and_leads_into_the_inbox(owner: Person, api: Api, others: Api) -> None:
    contact_id = api.contact(first_name="Ada", external_id="1")["id"]
    said = "Ask <b>Moreau</b> today"
    message = talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id), said)
    theirs = others.contact(first_name="Eve", external_id="1")["id"]
    talks.receive(others.workspace_id, theirs, talks.make_channel(others.workspace_id), "Their Moreau")

    long = "x " * 300 + "the street of Moreau"
    talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id), long)

    page = owner.page("dashboard/search?q=today moreau")

    assert f"/inbox/{message.conversation_id}" in page
    assert "Ada" in page
    assert "… x x x x x x x x the street of Moreau<" in owner.page("dashboard/search?q=moreau")
    assert "Their Moreau" not in owner.page("dashboard/search?q=moreau")
    assert "<b>Moreau" not in owner.get("dashboard/search?q=moreau").text


def test_a_frequent_word_shows_the_newest_and_says_that_there_are_more(owner: Person, api: Api) -> None:
    for number in range(21):
        api.contact(first_name=f"Claire {number}", external_id=f"c-{number}")

    with counted_statements() as seen:
        page = owner.page("dashboard/search?q=claire")

    assert "There are more" in page
    assert "Claire 0<" not in page
    assert len(seen) <= MOST_STATEMENTS


@pytest.mark.parametrize("text", ["m", "%%%", "a b c", "x" * 300, "_ %"])
def test_strange_words_find_nothing_and_break_nothing(owner: Person, api: Api, text: str) -> None:
    api.contact(first_name="Claire", external_id="1")

    answer = owner.get("dashboard/search", query_string={"q": text})

    assert answer.status_code == 200
    assert "Nothing found" in answer.text


def test_staff_find_a_workspace_by_a_part_of_its_name(support: Person, api: Api, others: Api) -> None:
    rows("UPDATE workspaces SET name = 'Blumen <Weiß>' WHERE id = %s", (others.workspace_id,))

    page = support.get("/dashboard/search?q=blumen").text

    assert f'href="/workspaces/{others.workspace_id}/dashboard"' in page
    assert "Blumen &lt;Weiß&gt;" in page
    assert api.workspace_id not in page
    assert "Nothing found" not in page
    assert "Blumen" not in support.page(f"/workspaces/{api.workspace_id}/dashboard/search?q=Blum")


def test_a_refused_calls_identifier_that_is_not_kept_is_said_to_be_in_the_log(support: Person, api: Api) -> None:
    refused = api.post("contacts", {"email": "x"}, headers={"X-Request-Id": "req-refused"})

    page = support.page(f"/dashboard/search?q={refused.json['traceId']}")

    assert "are only in the log of" in page


def test_words_are_not_searched_in_all_workspaces(support: Person, api: Api) -> None:
    api.contact(first_name="Claire", external_id="1")

    assert "Nothing found" in support.page("/dashboard/search?q=claire")
    assert "Claire" in support.page("dashboard/search?q=claire")


def test_a_segment_is_found_by_its_identifier(owner: Person, api: Api, others: Api) -> None:
    made = {each.workspace_id: ids.new("seg") for each in (api, others)}
    for workspace_id, segment_id in made.items():
        rows(
            "INSERT INTO segments (id, workspace_id, name, filter) VALUES (%s, %s, 'Regulars', '{}')",
            (segment_id, workspace_id),
        )

    found = owner.get(f"dashboard/search?q={made[api.workspace_id]}")

    assert found.location.endswith(f"/segments/{made[api.workspace_id]}")
    assert "Regulars" not in owner.page(f"dashboard/search?q={made[others.workspace_id]}")
