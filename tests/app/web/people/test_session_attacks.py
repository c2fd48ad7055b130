"""Attacks on sessions and on the sign-in: fixed, stolen and expired sessions, and what answers tell about accounts."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from argon2.exceptions import VerifyMismatchError
from flask import Flask
from flask.testing import FlaskClient
from itsdangerous import URLSafeTimedSerializer
from werkzeug.test import TestResponse

from app import database
from app.domain.people import accounts, sessions
from app.lib import clock
from tests.cast import all_of, everything_stored, one
from tests.pages import Person
from tests.people import PASSWORD

COOKIE = "__Host-bellhop"


@pytest.fixture
def browser(app: Flask) -> FlaskClient:
    """A browser of somebody who has not signed in."""
    made: FlaskClient = app.extensions["pages"].test_client()
    return made


def sign_in(browser: FlaskClient, email: str, password: str = PASSWORD, **options: object) -> TestResponse:
    token = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/sign-in", base_url=BASE).text)
    assert token
    fields = {"csrf_token": token[1], "email": email, "password": password}
    return browser.post("/sign-in", data=fields, base_url=BASE, headers={"Referer": f"{BASE}/sign-in"}, **options)


BASE = "https://bellhop.test"


def cookie_of(browser: FlaskClient) -> str:
    cookie = browser.get_cookie(COOKIE, domain="bellhop.test")
    assert cookie is not None
    return cookie.value


def is_signed_in(app: Flask, cookie: str) -> bool:
    thief = app.extensions["pages"].test_client()
    thief.set_cookie(COOKIE, cookie, domain="bellhop.test", secure=True)
    return bool(thief.get("/workspaces", base_url=BASE).status_code == 200)


def test_a_cookie_from_before_the_sign_in_never_becomes_a_session(
    app: Flask, owner: Person, browser: FlaskClient
) -> None:
    browser.get("/sign-in", base_url=BASE)
    before = cookie_of(browser)

    assert sign_in(browser, owner.email).status_code == 303

    assert cookie_of(browser) != before
    assert not is_signed_in(app, before)
    assert is_signed_in(app, cookie_of(browser))


def test_a_session_of_somebody_else_is_not_taken_over_by_signing_in(
    app: Flask, owner: Person, agent: Person, browser: FlaskClient
) -> None:
    assert sign_in(browser, agent.email).status_code == 303
    planted = cookie_of(browser)
    victim = app.extensions["pages"].test_client()
    victim.set_cookie(COOKIE, planted, domain="bellhop.test", secure=True)
    victim.post("/sign-out", base_url=BASE, data={"csrf_token": token_of(victim)}, headers={"Referer": f"{BASE}/"})

    assert sign_in(victim, owner.email).status_code == 303

    assert not is_signed_in(app, planted)
    assert owner.email in victim.get("/workspaces", base_url=BASE).text


def token_of(browser: FlaskClient) -> str:
    found = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/workspaces", base_url=BASE).text)
    assert found
    return found[1]


def test_the_cookie_is_for_this_host_over_tls_and_not_for_scripts(owner: Person, browser: FlaskClient) -> None:
    answer = sign_in(browser, owner.email)

    (cookie,) = [line for line in answer.headers.getlist("Set-Cookie") if line.startswith(f"{COOKIE}=")]
    said = {part.strip().partition("=")[0].lower() for part in cookie.split(";")}
    assert {"secure", "httponly", "samesite", "path"} <= said
    assert "domain" not in said
    assert "SameSite=None" not in cookie


def test_a_stolen_cookie_is_worth_nothing_after_the_sign_out(app: Flask, owner: Person, browser: FlaskClient) -> None:
    sign_in(browser, owner.email)
    stolen = cookie_of(browser)
    assert is_signed_in(app, stolen)

    browser.post("/sign-out", base_url=BASE, data={"csrf_token": token_of(browser)}, headers={"Referer": f"{BASE}/"})

    assert not is_signed_in(app, stolen)


def test_a_stolen_cookie_is_worth_nothing_after_a_new_password(app: Flask, owner: Person, browser: FlaskClient) -> None:
    sign_in(browser, owner.email)
    stolen = cookie_of(browser)

    accounts.set_password(owner.account_id, "another horse battery")

    assert not is_signed_in(app, stolen)


@pytest.mark.parametrize("column", ["expires_at", "seen_at"])
def test_an_expired_session_is_over(app: Flask, owner: Person, browser: FlaskClient, column: str) -> None:
    sign_in(browser, owner.email)
    cookie = cookie_of(browser)
    assert is_signed_in(app, cookie)

    past = clock.now() - sessions.LIFE - timedelta(days=1)
    database.rows(f"UPDATE sessions SET {column} = %s", (past,))

    assert not is_signed_in(app, cookie)


def test_a_forged_cookie_is_none(app: Flask, owner: Person, browser: FlaskClient) -> None:
    sign_in(browser, owner.email)
    cookie = cookie_of(browser)
    body, stamp, signature = cookie.rsplit(".", 2)
    forged = URLSafeTimedSerializer("guessed", salt="cookie-session").dumps({"_user_id": owner.account_id})

    for each in (forged, f"{body}.{stamp}.{signature[::-1]}", f"{body}x.{stamp}.{signature}", body, "", "x" * 3_000):
        assert not is_signed_in(app, each)


def test_the_database_does_not_hold_what_a_cookie_holds(owner: Person, browser: FlaskClient) -> None:
    sign_in(browser, owner.email)
    with browser.session_transaction(base_url=BASE) as session:
        token = session["_user_id"]

    assert token not in everything_stored()
    assert all(len(bytes(digest)) == 32 for digest in all_of("SELECT token_hash FROM sessions"))


def answer_to(browser: FlaskClient, email: str, password: str) -> tuple[int, str]:
    answer = sign_in(browser, email, password)
    text = re.sub(r'csrf_token" value="[^"]+', "", answer.text.replace(email, "EMAIL"))
    return answer.status_code, text


def test_the_form_does_not_tell_whether_there_is_an_account(owner: Person, browser: FlaskClient) -> None:
    known, unknown = (answer_to(browser, email, "wrong") for email in (owner.email, "nobody@shop.example"))

    assert known == unknown
    assert known[0] == 422


def test_being_slowed_down_does_not_tell_either(owner: Person, browser: FlaskClient) -> None:
    seen = {
        email: [answer_to(browser, email, "wrong")[0] for _ in range(8)]
        for email in (owner.email, "nobody@shop.example")
    }

    assert seen[owner.email] == seen["nobody@shop.example"]
    assert seen[owner.email][-1] == 429


def test_a_wrong_password_costs_as_much_as_a_wrong_address(
    owner: Person, browser: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []

    class Hasher:
        def verify(self, stored: str, password: str) -> bool:
            hashed.append(password)
            raise VerifyMismatchError

    monkeypatch.setattr(accounts, "_hasher", Hasher())
    monkeypatch.setattr(accounts, "_nobodys_hash", lambda: "")
    for email in (owner.email, "nobody@shop.example"):
        sign_in(browser, email, "wrong")

    assert hashed == ["wrong", "wrong"]


def test_a_password_is_neither_stored_nor_shown(owner: Person, browser: FlaskClient) -> None:
    answer = sign_in(browser, owner.email, "hunter2 hunter2")

    assert "hunter2" not in answer.text
    assert PASSWORD not in everything_stored()
    assert one("SELECT password_hash FROM accounts WHERE id = %s", owner.account_id).startswith("$argon2id$")
