"""The style sheet and the scripts."""

from __future__ import annotations

import gzip
import re

from flask import Flask

from tests.pages import Person


def test_a_page_names_assets_that_browsers_may_keep(app: Flask, owner: Person) -> None:
    client = app.test_client()
    found = re.findall(r'"(/static/[^"]+)"', owner.get("/workspaces").text)

    assert len(set(found)) == 10
    for address in found:
        answer = client.get(address, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200
        assert "immutable" in answer.headers["Cache-Control"]
        assert gzip.decompress(answer.data) == client.get(address).data


def test_another_version_is_not_there(app: Flask) -> None:
    assert app.test_client().get("/static/000000000000/app.css").status_code == 404
