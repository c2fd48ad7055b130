"""Streams of people who may listen no longer: they end at once, and within a minute where no sign of it came."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask

from app.database import rows
from app.domain.people import accounts, members, notifications, roles, sessions, support_accounts
from app.models.sessions import Session
from app.models.visits import Visit
from tests import pages
from tests.app.live.conftest import Listen, Running, cookie
from tests.cast import Api, until
from tests.listening import Ear
from tests.pages import Person

USAGE = {"meter": "contacts", "used": 81, "percent": 81, "included": 100}
Ending = Callable[[Person], object]


def sign_out(person: Person) -> None:
    assert person.post("/sign-out").status_code == 303


def end_from_elsewhere(person: Person) -> None:
    other = sessions.begin(person.account_id, "127.0.0.1", "another browser")
    sessions.end_all(person.account_id, except_=sessions.find(other).session_id)  # type: ignore[union-attr]


def take_a_new_password(person: Person) -> None:
    accounts.set_password(person.account_id, "another horse battery")


def be_removed(person: Person) -> None:
    member = members.of_account(person.workspace_id, person.account_id)
    assert member is not None
    pages.people.make_member(person.workspace_id, "second@shop.example")
    members.remove(person.workspace_id, member.id, None)


def end_the_visit(person: Person) -> None:
    support_accounts.end_visit(Visit.get().id)


@pytest.fixture
def staff(app: Flask, api: Api) -> Person:
    supporter = pages.supporter(app, api.workspace_id)
    supporter.visit()
    return supporter


@pytest.fixture
def owner(app: Flask, api: Api) -> Person:
    return pages.member(app, api.workspace_id, email="leaves@shop.example")


def opened(realtime: Running, person: Person) -> Ear:
    path = f"/live/workspace?workspace={person.workspace_id}"
    return Ear(realtime.port, path, {"Cookie": cookie(person)}).open().until_placed()


def ends_silently(ear: Ear, other: Ear, api: Api, status: int) -> None:
    """The stream ends and says nothing more; it is not opened again, and the other one goes on."""
    until(lambda: ear.listen().is_over)
    notifications.note(api.workspace_id, "usage_high", "afterwards", USAGE)
    other.until(lambda heard: "notification" in [each.kind for each in heard])
    assert [each.kind for each in ear.heard if each.kind != "presence"] == []
    assert ear.open().status == status


@pytest.mark.usefixtures("signs")
@pytest.mark.parametrize(
    ("ending", "status"),
    [(sign_out, 401), (end_from_elsewhere, 401), (take_a_new_password, 401), (be_removed, 404)],
)
def test_the_stream_of_a_member_ends_at_once(
    api: Api, realtime: Running, listen: Listen, owner: Person, ending: Ending, status: int
) -> None:
    ear, other = opened(realtime, owner), listen(api)

    ending(owner)

    ends_silently(ear, other, api, status)


@pytest.mark.usefixtures("signs")
@pytest.mark.parametrize(("ending", "status"), [(end_the_visit, 404), (sign_out, 401)])
def test_the_stream_of_staff_ends_with_the_visit_at_once(
    api: Api, realtime: Running, listen: Listen, staff: Person, ending: Ending, status: int
) -> None:
    ear, other = opened(realtime, staff), listen(api)

    ending(staff)

    ends_silently(ear, other, api, status)


@pytest.mark.usefixtures("signs")
def test_the_stream_of_a_member_ends_with_the_role_that_reads_messages(
    monkeypatch: pytest.MonkeyPatch, api: Api, realtime: Running, listen: Listen, owner: Person
) -> None:
    monkeypatch.setattr(roles, "ACTIONS", {**roles.ACTIONS, "messages.see": frozenset({"owner"})})
    ear, other = opened(realtime, owner), listen(api)
    member = members.of_account(owner.workspace_id, owner.account_id)
    assert member is not None

    members.change_role(owner.workspace_id, member.id, "agent", None)

    ends_silently(ear, other, api, 403)


@pytest.mark.usefixtures("signs")
def test_the_streams_of_another_session_go_on(app: Flask, realtime: Running, owner: Person) -> None:
    here, there = opened(realtime, owner), opened(realtime, pages.anew(app, owner))

    sessions.end(Session.select().order_by(Session.id.desc()).get().id)

    until(lambda: there.listen().is_over)
    assert not here.listen().is_over


EXPIRIES = {
    "the session has expired": ("UPDATE sessions SET expires_at = now() - interval '1 second'", 401),
    "the session was not used": ("UPDATE sessions SET seen_at = now() - interval '7 days 1 second'", 401),
    "the visit has expired": ("UPDATE visits SET expires_at = now() - interval '1 second'", 404),
    "the account is no longer staff's": ("UPDATE accounts SET is_support = false", 404),
    "nobody heard that the session was ended": ("UPDATE sessions SET ended_at = now()", 401),
}


@pytest.mark.parametrize("what", EXPIRIES)
def test_what_nobody_tells_is_found_out_by_the_check(
    monkeypatch: pytest.MonkeyPatch, app: Flask, api: Api, realtime: Running, staff: Person, what: str
) -> None:
    monkeypatch.setattr("app.live.hub.CHECKED_EVERY_SECONDS", 0.05)
    ear, (expiry, status) = opened(realtime, staff), EXPIRIES[what]

    rows(expiry)

    until(lambda: ear.listen().is_over)
    assert ear.open().status == status
