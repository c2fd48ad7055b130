"""Visits of support staff."""

from __future__ import annotations

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


def test_members_see_no_visit(owner: Person, support: Person) -> None:
    support.visit()

    assert "as support" not in owner.page("settings/members")
