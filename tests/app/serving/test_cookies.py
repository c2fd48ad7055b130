"""The token of a session is read from its cookie outside the pages, too."""

from __future__ import annotations

from flask import Flask

from app.serving.cookies import Cookies
from tests import pages
from tests.app.live.conftest import cookie
from tests.cast import Api
from tests.conftest import Keys


def test_the_token_is_read_from_the_cookie_that_the_pages_set(app: Flask, api: Api) -> None:
    person = pages.member(app, api.workspace_id)
    with person.client.session_transaction() as session:
        token = session["_user_id"]

    assert Cookies().token(f"other=1; {cookie(person)}") == token


def test_a_cookie_of_another_key_is_not_read(app: Flask, api: Api, keys: Keys) -> None:
    sent = cookie(pages.member(app, api.workspace_id))
    assert Cookies().token(sent) is not None

    keys("another-key-" * 4)
    assert Cookies().token(sent) is None


def test_anything_else_has_no_token(app: Flask) -> None:
    for header in ("", "nonsense", "__Host-bellhop=", "__Host-bellhop=e30.x.y", "__Host-bellhop=\x00"):
        assert Cookies().token(header) is None
