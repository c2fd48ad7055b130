"""Signing in and out."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.domain.people import accounts, sessions
from app.errors import Unavailable
from tests.cast import Api, one
from tests.people import PASSWORD, make_account, make_member

Send = Callable[..., TestResponse]


@pytest.fixture
def browser(app: Flask, api: Api) -> FlaskClient:
    """A browser that nobody has signed in with."""
    return app.extensions["pages"].test_client()


@pytest.fixture
def sign_in(browser: FlaskClient) -> Send:
    def sign_in(email: str = "ada@example.com", password: str = PASSWORD, address: str = "/sign-in") -> TestResponse:
        found = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/sign-in").text)
        assert found
        sent = {"csrf_token": found[1], "email": email, "password": password}
        return browser.post(address, data=sent)

    return sign_in


def test_a_member_signs_in_and_gets_to_their_workspace(sign_in: Send, browser: FlaskClient, api: Api) -> None:
    make_member(api.workspace_id)

    answer = sign_in("Ada@example.com ")

    assert (answer.status_code, answer.location) == (303, "/")
    assert browser.get("/").location == f"/workspaces/{api.workspace_id}/dashboard"


def test_who_was_sent_to_the_form_gets_to_where_they_wanted(sign_in: Send, browser: FlaskClient, api: Api) -> None:
    make_member(api.workspace_id)
    wanted = f"/workspaces/{api.workspace_id}/settings/members"
    form = browser.get(wanted).location

    assert sign_in(address=form).location == wanted


def test_a_refusal_keeps_the_address_but_not_the_password(sign_in: Send) -> None:
    make_account()

    answer = sign_in("ada@example.com", "hunter2hunter2")

    assert answer.status_code == 422
    assert 'value="ada@example.com"' in answer.text
    assert "hunter2" not in answer.text
    assert "do not match" in answer.text


def test_refusals_look_the_same_whoever_it_is(sign_in: Send) -> None:
    make_account()
    make_account("new@example.com", has_password=False)

    said = set()
    for email in ("ada@example.com", "new@example.com", "nobody@example.com"):
        answer = sign_in(email, "wrong password")
        text = re.sub(r'(csrf_token" value=")[^"]+', "", answer.text).replace(email, "")
        said.add((answer.status_code, text, str(answer.headers.get("Retry-After"))))

    assert len(said) == 1


def test_who_guesses_is_told_when_to_come_back(sign_in: Send) -> None:
    make_account()
    for _ in range(5):
        sign_in(password="wrong password")

    answer = sign_in()

    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 900
    assert "Try again in 15 minutes" in answer.text


def test_where_too_many_sign_in_the_form_stays(sign_in: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(email: str, password: str) -> None:
        raise Unavailable("Too many people are signing in at this moment.")

    monkeypatch.setattr(accounts, "verify", refuse)

    answer = sign_in()

    assert answer.status_code == 503
    assert 'value="ada@example.com"' in answer.text


def test_what_was_typed_is_text_not_markup(sign_in: Send) -> None:
    answer = sign_in('"><script>alert(1)</script>')

    assert "<script>alert" not in answer.text


def test_a_session_of_a_browser_is_a_row_with_its_address_and_name(sign_in: Send, browser: FlaskClient) -> None:
    account = make_account()
    browser.environ_base["HTTP_USER_AGENT"] = "Firefox"

    sign_in()

    [session] = sessions.of(account.id)
    assert (session.address, session.user_agent) == ("127.0.0.1", "Firefox")


@pytest.mark.parametrize("planted", ["", "x", "\0", "ü" * 3000])
def test_a_planted_session_is_nobodys(browser: FlaskClient, planted: str) -> None:
    with browser.session_transaction() as session:
        session["_user_id"] = planted

    assert browser.get("/workspaces").location == "/sign-in?next=/workspaces"


def test_a_stolen_cookie_is_worth_nothing_once_its_session_has_ended(
    app: Flask, sign_in: Send, browser: FlaskClient
) -> None:
    account = make_account()
    sign_in()
    thief = app.extensions["pages"].test_client()
    cookie = browser.get_cookie("__Host-bellhop")
    assert cookie is not None
    thief.set_cookie("__Host-bellhop", cookie.value)
    assert thief.get("/workspaces").status_code == 200

    accounts.set_password(account.id, "another password")

    assert thief.get("/workspaces").status_code == 303


def test_a_refused_attempt_makes_no_session(sign_in: Send) -> None:
    make_account()

    sign_in(password="wrong password")

    assert one("SELECT count(*) FROM sessions") == 0
