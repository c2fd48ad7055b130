"""The account of who has signed in."""

from __future__ import annotations

import pytest

from app.domain.people import accounts, notifications, sessions
from tests.cast import one
from tests.mail_server import MailServer
from tests.pages import Person
from tests.people import PASSWORD, make_account, signed, signed_in

NEW = {"current": PASSWORD, "password": "another password", "repeated": "another password"}


def test_a_new_password_ends_all_sessions_but_this_browser_stays_signed_in(owner: Person) -> None:
    account = accounts.find(owner.email)
    assert account is not None
    other = signed_in(account)
    with owner.client.session_transaction() as session:
        before = session["_user_id"]

    assert owner.post("/account/password", NEW).location == "/account"

    assert sessions.find(other) is None
    assert sessions.find(before) is None
    assert "Your password was changed" in owner.page("/account")
    assert len(sessions.of(account.id)) == 1
    assert accounts.verify(owner.email, "another password") is not None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"current": "wrong password"}, "This is not your password."),
        ({"password": "short", "repeated": "short"}, "A password has 10 to 1,000 characters."),
        ({"repeated": "something else"}, "This is not the same as above."),
    ],
)
def test_a_password_is_not_changed_by_a_mistake(owner: Person, fields: dict[str, str], said: str) -> None:
    answer = owner.post("/account/password", NEW | fields)

    assert answer.status_code == 422
    assert said in answer.text
    assert accounts.verify(owner.email, PASSWORD) is not None


def test_who_has_a_stolen_session_cannot_guess_the_password(owner: Person) -> None:
    statuses = [
        owner.post("/account/password", NEW | {"current": f"guess {number}"}).status_code for number in range(6)
    ]

    assert statuses == [422] * 5 + [429]
    assert owner.post("/account/password", NEW).status_code == 429


def test_sessions_are_listed_and_ended(owner: Person) -> None:
    account = accounts.find(owner.email)
    assert account is not None
    other = signed(account)
    assert "Firefox" in owner.page("/account")
    assert "(this one)" in owner.page("/account")

    assert owner.post(f"/account/sessions/{other.session_id}/end").status_code == 303

    assert [each.id for each in sessions.of(account.id)] != [other.session_id]
    assert "Firefox" not in owner.page("/account")
    assert owner.post(f"/account/sessions/{other.session_id}/end").status_code == 404


def test_ending_this_session_is_signing_out(owner: Person) -> None:
    [own] = sessions.of(owner.account_id)

    assert owner.post(f"/account/sessions/{own.id}/end").location == "/sign-in"

    assert owner.get("/account").status_code == 303


def test_all_other_sessions_are_ended_at_once(owner: Person) -> None:
    account = accounts.find(owner.email)
    assert account is not None
    signed_in(account)
    signed_in(account)

    owner.post("/account/sessions/end-others")

    assert len(sessions.of(account.id)) == 1
    assert owner.get("/account").status_code == 200


def test_sessions_of_others_are_out_of_reach(owner: Person) -> None:
    theirs = signed(make_account("bob@example.com"))

    assert owner.post(f"/account/sessions/{theirs.session_id}/end").status_code == 404

    assert len(sessions.of(theirs.account_id)) == 1


def test_email_is_chosen_where_there_is_any(owner: Person, mail_server: MailServer) -> None:
    assert 'name="wants_email" value="true" checked' in owner.page("/account")

    owner.post("/account/email", {})
    assert one("SELECT wants_email FROM accounts") is False
    owner.post("/account/email", {"wants_email": "true"})
    assert one("SELECT wants_email FROM accounts") is True


def test_where_there_is_no_email_nothing_is_chosen(owner: Person) -> None:
    assert "wants_email" not in owner.page("/account")


def test_staff_without_a_workspace_have_an_account_too(support: Person) -> None:
    assert "You see all workspaces" in support.page("/account")


def test_the_browser_of_a_session_is_text_not_markup(owner: Person) -> None:
    sessions.begin(owner.account_id, "192.0.2.1", "<script>alert(1)</script>")

    assert "<script>alert" not in owner.get("/account").text


def test_one_click_unsubscribes_without_signing_in(owner: Person) -> None:
    path = f"/unsubscribe/{notifications.unsubscribe_token(owner.account_id)}"
    browser = owner.client.application.test_client()

    assert browser.get(path).status_code == 200
    assert one("SELECT wants_email FROM accounts") is True
    assert browser.post(path, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert browser.post(path).status_code == 200

    assert one("SELECT wants_email FROM accounts") is False
    assert browser.post("/unsubscribe/acc_1.forged").status_code == 404
