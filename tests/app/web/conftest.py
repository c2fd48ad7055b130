"""Pages in tests: workers are played by applying writes at the moment when a page waits for one."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.domain.jobs import jobs
from app.models.jobs import Job
from tests import pages
from tests.app.web import scenes
from tests.app.web.scenes import Scene
from tests.bounding import set_bound
from tests.cast import Api, apply
from tests.conftest import clear_redis
from tests.pages import Person


@pytest.fixture(autouse=True)
def working(monkeypatch: pytest.MonkeyPatch) -> None:
    """Applies the writes of a workspace when a page waits for one of them."""
    wait = jobs.wait

    def work(job: Job, seconds: float) -> Job:
        apply(job.workspace_id)
        return wait(job, 0)

    monkeypatch.setattr("app.web.writes.jobs.wait", work)


@pytest.fixture
def owner(app: Flask, api: Api) -> Person:
    """An owner of the workspace of `api`."""
    return pages.member(app, api.workspace_id)


@pytest.fixture
def agent(app: Flask, api: Api) -> Person:
    """An agent of the workspace of `api`."""
    return pages.member(app, api.workspace_id, "agent")


@pytest.fixture
def stranger(app: Flask, others: Api, api: Api) -> Person:
    """An owner of another workspace; paths are relative to the workspace of `api`."""
    found = pages.member(app, others.workspace_id, "owner", "owner@others.example")
    return Person(found.client, api.workspace_id, found.account_id, found.email)


@pytest.fixture
def support(app: Flask, api: Api) -> Person:
    """A member of staff; paths are relative to the workspace of `api`."""
    return pages.supporter(app, api.workspace_id)


@pytest.fixture(scope="module")
def furnished(app: Flask, empty_for_module: None, client: FlaskClient) -> Scene:
    """The scene, which takes seconds to make, once for a module."""
    return scenes.furnished(app, client)


@pytest.fixture
def scene(furnished: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The scene as it was in the beginning, in which a test may open any number of pages."""
    clear_redis()
    set_bound(monkeypatch, "PAGES_PER_SESSION", 1_000_000)
    return furnished.put_back()
