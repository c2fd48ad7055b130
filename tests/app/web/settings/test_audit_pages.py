"""The audit logs of a workspace and of all workspaces."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from typing import Any

import pytest
from flask import Flask

from app.database import database
from app.domain.people import support_accounts
from app.domain.work import audit
from app.lib import ids
from app.lib.json import timestamp
from tests import pages
from tests.cast import Api, one
from tests.pages import Person
from tests.people import PASSWORD


def note(api: Api, number: int = 1, action: str = "tokens.create", **detail: object) -> None:
    member_id = one("SELECT min(id) FROM members WHERE workspace_id = %s", api.workspace_id)
    audit.note(api.workspace_id, member_id, action, "token", f"tok_{number}", detail)


def text_of(page: str) -> str:
    """The text of the table, without markup, spaced once."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page[page.index("<tbody") : page.index("</tbody")]))


def test_it_says_who_did_what(owner: Person, api: Api) -> None:
    api.endpoint()
    note(api, name="Shop")

    page = owner.page("settings/audit")

    assert "owner@shop.example" in page
    assert "tokens.create" in page
    assert "First token" in page  # which made the endpoint
    assert "endpoints.create" in page


def test_it_says_why_support_did_it(owner: Person, support: Person) -> None:
    support.visit()

    page = owner.page("settings/audit")

    assert "Support, ticket" in page
    assert "T-1" in page
    assert "The customer's receiver was away" in page
    assert "support@bellhop.example" not in page


def test_staff_see_which_of_them_it_was(support: Person) -> None:
    support.visit()

    page = support.page("settings/audit")

    assert re.search(r"Support, support@bellhop\.example, ticket\s.*T-1", page)


def test_it_is_filtered_by_time(owner: Person, api: Api) -> None:
    note(api, 1)
    time.sleep(0.002)  # identifiers tell the time to the millisecond
    note(api, 2)
    between = timestamp(ids.time_of(str(one("SELECT max(id) FROM audit_entries"))))

    since, until = owner.page(f"settings/audit?since={between}"), owner.page(f"settings/audit?until={between}")

    assert ("tok_1" in since, "tok_2" in since) == (False, True)
    assert ("tok_1" in until, "tok_2" in until) == (True, False)
    assert 'data-preset="yesterday"' in since


def test_it_is_for_admins_and_support(owner: Person, agent: Person, stranger: Person, support: Person) -> None:
    assert owner.get("settings/audit").status_code == 200
    assert support.get("settings/audit").status_code == 200
    assert agent.get("settings/audit").status_code == 403
    assert stranger.get("settings/audit").status_code == 404


def test_it_is_filtered_by_action_and_target(owner: Person, api: Api) -> None:
    note(api, 1)
    note(api, 2, "tokens.revoke")

    page = owner.page("settings/audit?action=tokens.revoke")
    assert "tok_2" in page
    assert "tok_1" not in page
    page = owner.page("settings/audit?target=tok_1")
    assert "tok_1" in page
    assert "tok_2" not in page
    assert "Nothing matches." in owner.page("settings/audit?action=none")


def test_it_goes_on_on_the_next_page(owner: Person, api: Api) -> None:
    for number in range(60):
        note(api, number)

    page = owner.page("settings/audit")

    assert "tok_59<" in page
    assert "tok_9<" not in page
    assert 'rel="next"' in page


def test_it_can_be_taken_away(owner: Person, api: Api) -> None:
    note(api, name="=1+1")

    [entry] = json.loads(owner.get("settings/audit?format=json").data)
    [line] = csv.DictReader(io.StringIO(owner.get("settings/audit?format=csv").text))

    assert (entry["action"], entry["detail"]) == ("tokens.create", {"name": "=1+1"})
    assert (line["action"], line["target"]) == ("tokens.create", "tok_1")


def test_an_empty_log_says_what_it_is_for(owner: Person) -> None:
    assert "Nothing has been changed yet." in owner.page("settings/audit")


def test_details_are_text_not_markup(owner: Person, api: Api) -> None:
    note(api, name="<script>alert(1)</script>")

    assert "<script>alert" not in owner.get("settings/audit").text


def test_it_says_in_sentences_who_did_what_where_and_why(support: Person, owner: Person, api: Api, others: Api) -> None:
    endpoint_id = api.endpoint()
    support.visit()
    support.post(f"settings/developers/endpoints/{endpoint_id}/rotate-secret")
    member_id = one("SELECT id FROM members WHERE account_id = %s", owner.account_id)
    audit.note(others.workspace_id, member_id, "tokens.create", "token", "tok_1", {"name": "Shop"})
    made = support_accounts.create("grace@support.example", PASSWORD)

    page = support.page("/dashboard/audit")

    text = text_of(page)
    assert "Support, support@bellhop.example, ticket T-1, began the visit vis_" in text
    assert ": The customer's receiver was away" in text
    assert "Member owner@shop.example created the token tok_1." in text
    assert f"Token First token created the endpoint {endpoint_id}." in text
    assert f"the installation An operator, by a command, made the support account {made.id}." in text
    for id in (api.workspace_id, others.workspace_id):
        assert one("SELECT name FROM workspaces WHERE id = %s", id) in text


def test_the_one_of_all_is_for_staff(support: Person, owner: Person, stranger: Person) -> None:
    assert support.get("/dashboard/audit").status_code == 200
    for customer in (owner, stranger):
        assert customer.get("/dashboard/audit").status_code == 404
        assert customer.get("/dashboard/audit?format=json").status_code == 404


def test_it_is_filtered_by_person_workspace_staff_and_time(
    app: Flask, support: Person, owner: Person, api: Api, others: Api
) -> None:
    linus = pages.supporter(app, others.workspace_id, "linus@support.example")
    mine = support_accounts.begin_visit(support.account_id, api.workspace_id, "Reason", "T-1").id
    his = support_accounts.begin_visit(linus.account_id, others.workspace_id, "Reason", "T-2").id
    member_id = one("SELECT id FROM members WHERE account_id = %s", owner.account_id)
    audit.note(api.workspace_id, member_id, "tokens.create", "token", "tok_owners")
    at = timestamp(ids.time_of(str(one("SELECT id FROM audit_entries WHERE target_id = 'tok_owners'"))))

    def shown(query: str) -> set[str]:
        page = support.page(f"/dashboard/audit?{query}")
        return {each for each in (mine, his, "tok_owners") if f"<code>{each}</code>" in page}

    assert shown("") == {mine, his, "tok_owners"}
    assert shown("person=LINUS@support.example") == {his}
    assert shown("person=owner@shop.example") == {"tok_owners"}
    assert shown("by=support") == {mine, his}
    assert shown(f"workspace={api.workspace_id}") == {mine, "tok_owners"}
    assert shown(f"workspace={api.workspace_id}&person=support@bellhop.example&by=support") == {mine}
    assert "tok_owners" in shown(f"since={at}")
    assert "tok_owners" not in shown(f"until={at}")
    assert "Nothing matches." in support.page("/dashboard/audit?person=nobody@example.com")
    assert "begins with ws_" in support.page("/dashboard/audit?workspace=shop")


def test_a_former_member_is_still_named(support: Person, agent: Person, api: Api) -> None:
    member_id = one("SELECT id FROM members WHERE account_id = %s", agent.account_id)
    audit.note(api.workspace_id, member_id, "tokens.create", "token", "tok_1")
    database.execute_sql("DELETE FROM members WHERE id = %s", (member_id,))

    assert "Member agent@shop.example created the token tok_1." in text_of(support.page("/dashboard/audit"))


def test_it_goes_on_on_the_next_page_within_the_filters(support: Person, api: Api) -> None:
    for number in range(60):
        audit.note(api.workspace_id, None, "tokens.create", "token", f"tok_{number}")

    page = support.page(f"/dashboard/audit?workspace={api.workspace_id}")
    following = re.search(r'rel="next" href="([^"]+)"', page)

    assert "tok_59<" in page
    assert "tok_9<" not in page
    assert following is not None
    second = support.page(following[1])
    assert ("tok_9<" in second, "tok_10<" in second, 'rel="next"' in second) == (True, False, False)


def test_the_one_of_all_can_be_taken_away(support: Person, api: Api) -> None:
    support_accounts.begin_visit(support.account_id, api.workspace_id, "=1+1", "T-1")

    [entry] = json.loads(support.get("/dashboard/audit?format=json").data)
    [line] = csv.DictReader(io.StringIO(support.get("/dashboard/audit?format=csv").text))

    assert (entry["person"], entry["workspace_id"]) == ("support@bellhop.example", api.workspace_id)
    assert (entry["action"], entry["reason"], entry["ticket"]) == ("visits.begin", "=1+1", "T-1")
    assert line["reason"] == "'=1+1"


def test_an_empty_one_of_all_says_what_it_is_for(support: Person) -> None:
    assert "Nothing has been changed yet." in support.page("/dashboard/audit")


def test_what_strangers_wrote_is_text(support: Person, api: Api) -> None:
    wrote = "<script>alert(1)</script>"
    support_accounts.begin_visit(support.account_id, api.workspace_id, wrote, wrote)
    audit.note(api.workspace_id, None, "tokens.create", "token", wrote, {wrote: wrote})
    database.execute_sql("UPDATE workspaces SET name = %s", (wrote,))

    assert "<script>alert" not in support.get("/dashboard/audit").text


@pytest.mark.usefixtures("api")
def test_a_page_takes_few_statements_whatever_it_shows(support: Person, others: Api, api: Api) -> None:
    for number in range(60):
        workspace = (api, others)[number % 2]
        support_accounts.begin_visit(support.account_id, workspace.workspace_id, "Reason", f"T-{number}")
    ran: list[Any] = []
    run = database.execute_sql

    def noting(sql: str, params: Any = None) -> Any:
        ran.append(sql)
        return run(sql, params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "execute_sql", noting)
        support.get("/dashboard/audit?person=support@bellhop.example&by=support")

    assert len(ran) <= 8
