"""Visits of support staff."""

from __future__ import annotations

import re

from app.domain.people import sessions
from app.lib import clock
from tests.cast import Api, one
from tests.pages import Person


def test_a_visit_is_shown_on_every_page_until_it_ends(support: Person) -> None:
    assert "You see this workspace as support." in support.page("settings/members")

    support.visit()
    assert "You are visiting as support" in support.page("settings/members")
    assert "T-1" in support.page("settings/audit")
    support.post("visit/end")

    assert "You see this workspace as support." in support.page("settings/members")


def test_a_visit_ends_by_itself(support: Person) -> None:
    support.visit()

    with clock.moved_by(minutes=61):
        assert "You see this workspace as support." in support.page("settings/members")


def test_a_visit_needs_a_reason_and_a_ticket(support: Person, api: Api) -> None:
    for fields in ({}, {"reason": "Why"}, {"ticket": "T-1"}, {"reason": " ", "ticket": " "}):
        support.post("visit/begin", fields)

    assert sessions.visit_in(support.account_id, api.workspace_id) is None
    assert "reason" in support.page("settings/members")


def test_members_do_not_visit(owner: Person, stranger: Person) -> None:
    fields = {"reason": "Why", "ticket": "T-1"}

    assert owner.post("visit/begin", fields).status_code == 404
    assert stranger.post("visit/begin", fields).status_code == 404

    assert one("SELECT count(*) FROM visits") == 0


def test_what_changes_something_outside_of_a_visit_is_refused_with_the_reason(support: Person, api: Api) -> None:
    endpoint_id = api.endpoint()
    path = f"settings/developers/endpoints/{endpoint_id}/rotate-secret"

    refused = support.post(path, headers={"Accept": "text/html"})

    assert refused.status_code == 403
    assert "First say why you change something in this workspace" in refused.text
    assert 'name="ticket"' in refused.text  # the form that begins the visit
    support.visit()
    assert support.post(path).status_code == 200
    support.post("visit/end")
    assert support.post(path).status_code == 403


def test_an_invitation_does_not_make_a_member_of_support(support: Person, owner: Person, api: Api) -> None:
    """Where no e-mail is sent, the owner gets the link, and sees the same as for any account."""
    shown = owner.post("settings/members/invite", {"email": support.email, "role": "owner"})
    found = re.search(r"https://bellhop\.test(/links/[\w-]+)", shown.text)
    assert found is not None
    assert "support" not in shown.text.replace(support.email, "").replace("You see this workspace as support.", "")

    assert f"You are signed in as {owner.email}." in owner.post(found[1]).text
    refused = support.post(found[1])

    assert refused.status_code == 422
    assert "This is a support account, and these belong to no workspace." in refused.text
    assert one("SELECT count(*) FROM members WHERE account_id = %s", support.account_id) == 0


def test_staff_without_a_workspace_are_led_to_all_of_them(support: Person) -> None:
    assert support.get("/").location == "/dashboard"
    assert "Support accounts belong to no workspace." in support.page("/workspaces")


def test_members_see_no_visit(owner: Person, support: Person) -> None:
    support.visit()

    assert "as support" not in owner.page("settings/members")
