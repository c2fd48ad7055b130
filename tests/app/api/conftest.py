"""Two furnished workspaces, for what is tried on every route of the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.cast import one
from tests.conftest import clear_redis
from tests.copies import Copy
from tests.surface import Scene, belongings, make_scene


@pytest.fixture(scope="module")
def furnished(app: Flask, empty_for_module: None, client: FlaskClient) -> tuple[Scene, Copy]:
    return make_scene(app, client), Copy()


@pytest.fixture
def scene(furnished: tuple[Scene, Copy]) -> Iterator[Scene]:
    """Whatever is tried, the other workspace stays as it was, and no accepted write breaks."""
    scene, copy = furnished
    clear_redis()
    copy.put_back()
    before = belongings(scene.theirs.workspace_id)
    yield scene
    scene.ours.apply()
    assert belongings(scene.theirs.workspace_id) == before
    assert one("SELECT count(*) FROM jobs WHERE (problem->>'status')::int >= 500") == 0
