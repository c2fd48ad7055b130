"""Error pages."""

from __future__ import annotations

import pytest
from flask import Flask

from app.web import start
from tests.pages import Person

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_a_wrong_address_gets_a_page_in_a_browser(owner: Person) -> None:
    answer = owner.get("/nowhere", headers=BROWSER)

    assert answer.status_code == 404
    assert answer.mimetype == "text/html"
    assert answer.headers["X-Request-Id"] in answer.text


def test_a_program_gets_a_problem(app: Flask) -> None:
    answer = app.test_client().get("/nowhere", headers={"Accept": "application/json"})

    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"
    assert answer.json["traceId"] == answer.headers["X-Request-Id"]


def test_a_surprise_tells_nothing_but_its_number(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(start, "render_template", fail)

    answer = owner.get("/workspaces", headers=BROWSER)

    assert answer.status_code == 500
    assert "a secret" not in answer.text
    assert answer.headers["X-Request-Id"] in answer.text
