"""The audit log."""

from __future__ import annotations

import csv
import io
import json
import re
import time

from app.domain.work import audit
from app.lib import ids
from app.lib.json import timestamp
from tests.cast import Api, one
from tests.pages import Person


def note(api: Api, number: int = 1, action: str = "tokens.create", **detail: object) -> None:
    member_id = one("SELECT min(id) FROM members WHERE workspace_id = %s", api.workspace_id)
    audit.note(api.workspace_id, member_id, action, "token", f"tok_{number}", detail)


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
