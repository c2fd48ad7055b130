"""Who may see a page, and what everybody else gets."""

from __future__ import annotations

import re
from contextlib import ExitStack
from io import BytesIO

import pytest
from flask import Flask

from app import bounds
from app.domain.people import sessions
from tests import pages
from tests.bounding import set_bound
from tests.conftest import clear_redis
from tests.pages import Person


def test_who_has_not_signed_in_is_sent_to_the_form_and_back_afterwards(app: Flask, owner: Person) -> None:
    nobody = app.test_client()

    answer = nobody.get(owner.path("dashboard?days=7"))

    assert answer.status_code == 303
    assert answer.location == f"/sign-in?next=/workspaces/{owner.workspace_id}/dashboard?days%3D7"


def test_another_workspace_is_not_there(stranger: Person, owner: Person) -> None:
    assert owner.get("dashboard").status_code == 200
    assert stranger.get("dashboard").status_code == 404


@pytest.mark.parametrize("workspace", ["ws_0", "x", "ws_01hzzzzzzzzzzzzzzzzzzzzzzz", "%00"])
def test_a_workspace_that_never_was_is_not_there_for_staff_either(support: Person, workspace: str) -> None:
    assert support.get(f"/workspaces/{workspace}/dashboard").status_code == 404


def test_pages_of_staff_are_not_there_for_members(owner: Person, support: Person) -> None:
    assert support.get("/dashboard").status_code == 200
    assert owner.get("/dashboard").status_code == 404


def test_a_role_without_the_action_is_refused(agent: Person) -> None:
    assert agent.get("settings/billing").status_code == 403


def test_staff_change_something_only_during_a_visit(support: Person) -> None:
    fields = {"email": "new@shop.example"}

    assert support.post("contacts/new", fields).status_code == 403
    support.visit()
    assert support.post("contacts/new", fields).status_code == 303


def test_a_form_without_its_token_changes_nothing(owner: Person) -> None:
    answer = owner.client.post("/sign-out")

    assert answer.status_code == 400
    assert owner.get("/workspaces").status_code == 200


def test_an_ended_session_is_over_at_once(owner: Person) -> None:
    sessions.end_all(owner.account_id)

    assert owner.get("/workspaces").status_code == 303


def test_signing_out_ends_the_session_itself_not_only_the_cookie(owner: Person) -> None:
    assert owner.post("/sign-out").location == "/sign-in"

    assert sessions.of(owner.account_id) == []


def test_signing_in_drops_what_the_browser_sent_before(app: Flask, owner: Person) -> None:
    client = app.extensions["pages"].test_client()
    with client.session_transaction() as session:
        session["_user_id"] = "planted"
        session["planted"] = True
    nobody = Person(client, owner.workspace_id, "", "")
    sent = {
        "csrf_token": _token(client.get("/sign-in").text),
        "email": owner.email,
        "password": "correct horse battery",
    }

    assert nobody.client.post("/sign-in", data=sent).status_code == 303

    with client.session_transaction() as session:
        assert "planted" not in session
        assert session["_user_id"] != "planted"


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_nobody_is_sent_elsewhere_after_signing_in(app: Flask, owner: Person, wanted: str) -> None:
    client = app.extensions["pages"].test_client()
    sent = {
        "csrf_token": _token(client.get("/sign-in").text),
        "email": owner.email,
        "password": "correct horse battery",
    }

    answer = client.post("/sign-in", query_string={"next": wanted}, data=sent)

    assert answer.status_code == 303
    assert answer.location in ("/", wanted.removeprefix("https://evil.example"))


def test_every_page_forbids_frames_scripts_from_elsewhere_and_caching(owner: Person) -> None:
    headers = owner.get("/workspaces").headers

    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Request-Id"]


def _token(page: str) -> str:
    return page.split('name="csrf_token" value="')[1].split('"')[0]


def test_only_who_may_import_sends_a_large_form(app: Flask, owner: Person, agent: Person) -> None:
    large = {"file": (BytesIO(b"x" * 2_000_000), "contacts.csv")}

    assert app.test_client().post(owner.path("contacts/import"), data=large).status_code == 303
    assert agent.post("contacts/import", {"file": (BytesIO(b"x" * 2_000_000), "contacts.csv")}).status_code == 403
    assert owner.post("contacts/import", {"file": (BytesIO(b"x" * 2_000_000), "contacts.csv")}).status_code == 422
    assert owner.post("contacts/new", {"first_name": "x" * 2_000_000}).status_code == 413


@pytest.mark.parametrize("is_redis_away", [False, True])
def test_a_session_opens_so_many_pages_a_minute(
    app: Flask, owner: Person, monkeypatch: pytest.MonkeyPatch, is_redis_away: bool
) -> None:
    other_browser = pages.anew(app, owner)
    style = re.search(r'"(/static/[^"]+\.css)"', other_browser.page("dashboard"))
    assert style
    clear_redis()
    set_bound(monkeypatch, "PAGES_PER_SESSION", 2)
    if is_redis_away:
        monkeypatch.setattr("app.web.access.rate_limits.count", lambda *_: None)

    answers = [owner.get("dashboard"), owner.get("no-such-page"), owner.get("dashboard")]

    assert [answer.status_code for answer in answers] == [200, 404, 429]
    assert "You may open 2 pages a minute." in answers[2].text
    assert int(answers[2].headers["Retry-After"]) > 0
    assert other_browser.get("dashboard").status_code == 200
    assert owner.client.get(style[1]).status_code == 200


def test_a_workspace_has_so_many_pages_under_way(owner: Person, stranger: Person) -> None:
    for _ in range(bounds.PAGES_PER_WORKSPACE.most + 1):  # each gives its place back
        assert owner.get("dashboard").status_code == 200
        assert owner.get("no-such-page").status_code == 404
        assert stranger.get("dashboard").status_code == 404
    with ExitStack() as under_way:
        for _ in range(bounds.PAGES_PER_WORKSPACE.most):
            assert bounds.PAGES.take(owner.workspace_id)
            under_way.callback(bounds.PAGES.leave, owner.workspace_id)
        refused = owner.get("dashboard")
        elsewhere = owner.get("/workspaces")

    assert (refused.status_code, refused.headers["Retry-After"], elsewhere.status_code) == (429, "1", 200)
    assert owner.get("dashboard").status_code == 200
