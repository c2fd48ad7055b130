"""Links that set a password, and asking for one."""

from __future__ import annotations

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.domain.people import accounts, emails, links, members
from app.domain.people.links import Made
from app.lib import clock
from tests.cast import Api, everything_stored, one
from tests.mail_server import MailServer
from tests.people import PASSWORD, make_account, make_member

NEW = "another password"


@pytest.fixture
def browser(app: Flask, api: Api) -> FlaskClient:
    """A browser that nobody has signed in with."""
    return app.extensions["pages"].test_client()


def send(browser: FlaskClient, path: str, **fields: str) -> TestResponse:
    found = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/sign-in").text)
    token = found[1] if found else re.findall(r'name="csrf_token" value="([^"]+)"', browser.get("/workspaces").text)[0]
    return browser.post(path, data={"csrf_token": token} | fields)


def path_of(made: Made) -> str:
    return made.address.removeprefix("https://bellhop.test")


def test_an_invitation_ends_in_the_workspace(browser: FlaskClient, api: Api) -> None:
    path = path_of(links.invite(api.workspace_id, "ada@example.com", "admin"))
    page = browser.get(path).text
    assert "Ours" in page
    assert 'value="ada@example.com"' in page
    assert "invited as an admin" in page

    answer = send(browser, path, password=NEW, repeated=NEW)

    assert (answer.status_code, answer.location) == (303, "/")
    assert browser.get("/").location == f"/workspaces/{api.workspace_id}/dashboard"
    assert [person.role for person in members.of_workspace(api.workspace_id)] == ["admin"]
    assert browser.get(path).status_code == 404


@pytest.mark.parametrize(
    ("password", "repeated", "said"),
    [
        ("short", "short", "A password has 10 to 1,000 characters."),
        (NEW, "another passwort", "This is not the same as above."),
        ("", "", "A password has 10"),
    ],
)
def test_a_password_that_is_refused_leaves_the_link(
    browser: FlaskClient, password: str, repeated: str, said: str
) -> None:
    path = path_of(links.reset(make_account()))

    answer = send(browser, path, password=password, repeated=repeated)

    assert answer.status_code == 422
    assert said in answer.text
    assert send(browser, path, password=NEW, repeated=NEW).status_code == 303


def test_who_has_a_password_joins_with_it(browser: FlaskClient, api: Api, mail_server: MailServer) -> None:
    make_account()
    path = path_of(links.invite(api.workspace_id, "ada@example.com", "agent"))
    assert 'name="password"' not in browser.get(path).text

    answer = send(browser, path, password=NEW, repeated=NEW)

    assert (answer.status_code, answer.location) == (303, "/")
    assert browser.get("/").location == "/sign-in?next=/"
    assert accounts.verify("ada@example.com", PASSWORD) is not None
    assert [person.role for person in members.of_workspace(api.workspace_id)] == ["agent"]


def test_a_link_that_is_over_says_what_to_do(browser: FlaskClient) -> None:
    path = path_of(links.reset(make_account()))

    with clock.moved_by(hours=2):
        for answer in (browser.get(path), send(browser, path, password=NEW, repeated=NEW)):
            assert answer.status_code == 404
            assert "Ask for a new one." in answer.text
    assert browser.get("/links/nothing").status_code == 404


def test_a_link_that_was_used_does_nothing_more(browser: FlaskClient, api: Api) -> None:
    account = make_account()
    for made in (links.reset(account), links.invite(api.workspace_id, "eve@example.com", "agent")):
        assert send(browser, path_of(made), password=NEW, repeated=NEW).status_code == 303
        before = everything_stored()

        for answer in (
            browser.get(path_of(made)),
            send(browser, path_of(made), password="third one", repeated="third one"),
        ):
            assert answer.status_code == 404

        assert everything_stored() == before


def test_a_link_is_not_told_to_other_sites_or_kept(browser: FlaskClient) -> None:
    headers = browser.get(path_of(links.reset(make_account()))).headers

    assert (headers["Referrer-Policy"], headers["Cache-Control"]) == ("same-origin", "no-store")


def test_a_link_needs_a_form_of_ours(browser: FlaskClient) -> None:
    path = path_of(links.reset(make_account()))

    assert browser.post(path, data={"password": NEW, "repeated": NEW}).status_code == 400
    assert browser.get(path).status_code == 200


def test_a_forgotten_password_is_set_anew_by_email(browser: FlaskClient, mail_server: MailServer) -> None:
    make_account()

    asked = send(browser, "/forgotten", email=" Ada@example.com")
    emails.send_due()

    assert "a link is on its way" in asked.text
    found = re.search(r"https://bellhop\.test(/links/\S+)", mail_server.received[0].get_content())
    assert found
    assert send(browser, found[1], password=NEW, repeated=NEW).status_code == 303
    assert accounts.verify("ada@example.com", NEW) is not None


def test_nobody_learns_who_has_an_account(browser: FlaskClient, mail_server: MailServer) -> None:
    make_account()

    answers = {
        send(browser, "/forgotten", email=email).text.replace(email, "") for email in ("ada@example.com", "x@y.z")
    }

    assert len(answers) == 1
    assert one("SELECT count(*) FROM password_links") == 0  # not before the answer
    assert one("SELECT count(*) FROM emails") == 2


def test_one_address_asks_for_so_many_links(browser: FlaskClient, mail_server: MailServer) -> None:
    statuses = [send(browser, "/forgotten", email=f"person-{number}@x.example").status_code for number in range(52)]

    assert statuses == [200] * 50 + [429] * 2
    assert one("SELECT count(*) FROM emails") == 50


def test_without_a_mail_server_the_page_says_whom_to_ask(browser: FlaskClient) -> None:
    make_account()

    for text in (browser.get("/forgotten").text, send(browser, "/forgotten", email="ada@example.com").text):
        assert "python -m app member reset" in text
    assert one("SELECT count(*) FROM emails") == 0


@pytest.mark.parametrize("email", ["", "x" * 5000, "\0", '"><script>'])
def test_what_is_no_address_gets_the_same_answer(browser: FlaskClient, mail_server: MailServer, email: str) -> None:
    answer = send(browser, "/forgotten", email=email)

    assert answer.status_code == 200
    assert '"><script>' not in answer.text


def test_a_link_signs_out_who_was_signed_in_before(app: Flask, api: Api, browser: FlaskClient) -> None:
    make_member(api.workspace_id, "bob@example.com")
    send(browser, "/sign-in", email="bob@example.com", password=PASSWORD)

    send(browser, path_of(links.reset(make_account())), password=NEW, repeated=NEW)

    assert "ada@example.com" in browser.get("/account").text
