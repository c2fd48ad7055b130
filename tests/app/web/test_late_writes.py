"""Pages and forms while no worker applies writes."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from app.database import rows
from app.domain.jobs import jobs
from app.web.writes import STILL_QUEUED
from tests import pages
from tests.cast import Api
from tests.pages import Person


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long pages have waited. No worker is there."""
    asked: list[float] = []

    def wait(job: jobs.Job, seconds: float) -> jobs.Job:
        asked.append(seconds)
        return job

    monkeypatch.setattr("app.web.writes.jobs.wait", wait)
    return asked


@pytest.fixture
def late(api: Api) -> None:
    """A write of the workspace has waited for two minutes."""
    api.post("contacts", {"external_id": "first"})
    rows("UPDATE jobs SET due_at = now() - interval '2 minutes'")


def delay_shown(page: str) -> str | None:
    """By how much changes are late, as a page says."""
    said = r'role="status">Changes are applied with a delay of about ([^.]+) at the moment\.'
    found = re.search(said, page)
    return found[1] if found else None


@pytest.mark.usefixtures("late")
def test_a_form_answers_at_once_where_writes_are_late_and_says_so(owner: Person, waits: list[float]) -> None:
    answer = owner.post("contacts/new", {"email": "ada@example.com"})
    page = owner.page("contacts")

    assert answer.status_code == 303
    assert waits == []
    assert STILL_QUEUED in page
    assert delay_shown(page) == "2 min"


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("path", ["dashboard", "contacts", "settings/billing"])
def test_pages_say_by_how_much_writes_are_late(owner: Person, support: Person, path: str) -> None:
    assert delay_shown(owner.page(path)) == "2 min"
    assert delay_shown(support.page(path)) == "2 min"


@pytest.mark.usefixtures("late")
def test_a_page_does_not_show_the_delay_of_another_workspace(api: Api, others: Api, app: Flask) -> None:
    stranger = pages.member(app, others.workspace_id, "owner", "owner@others.example")

    assert delay_shown(stranger.page("dashboard")) is None
    assert delay_shown(stranger.get(f"/workspaces/{api.workspace_id}/dashboard").text) is None
    assert delay_shown(stranger.page("/account")) is None


def test_pages_say_nothing_of_a_short_wait_nor_of_writes_that_are_applied(owner: Person, api: Api) -> None:
    api.post("contacts", {"external_id": "first"})
    rows("UPDATE jobs SET due_at = now() - interval '3 seconds'")
    before = owner.page("dashboard")
    rows("UPDATE jobs SET due_at = now() - interval '1 hour'")
    while_late = owner.page("dashboard")
    api.apply()

    assert (delay_shown(before), delay_shown(while_late)) == (None, "1 h")
    assert delay_shown(owner.page("dashboard")) is None


def test_a_form_waits_where_writes_are_applied_soon(owner: Person, api: Api, waits: list[float]) -> None:
    api.post("contacts", {"external_id": "first"})

    owner.post("contacts/new", {"email": "ada@example.com"})

    assert waits == [5]
