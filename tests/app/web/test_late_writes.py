"""Forms while no worker applies writes."""

from __future__ import annotations

import re

import pytest

from app.database import rows
from app.domain import jobs
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


def test_a_form_answers_at_once_where_writes_are_late_and_says_so(owner: Person, api: Api, waits: list[float]) -> None:
    api.post("contacts", {"external_id": "first"})
    rows("UPDATE jobs SET due_at = now() - interval '2 minutes'")

    answer = owner.post("contacts/new", {"email": "ada@example.com"})
    page = owner.get("contacts").text

    assert answer.status_code == 303
    assert waits == []
    assert re.search(r"Changes are applied with a delay at the moment: the oldest has waited for 1\d\d seconds\.", page)


def test_a_form_waits_where_writes_are_applied_soon(owner: Person, api: Api, waits: list[float]) -> None:
    api.post("contacts", {"external_id": "first"})

    owner.post("contacts/new", {"email": "ada@example.com"})

    assert waits == [10]


def test_the_delay_is_the_age_of_the_oldest_write_of_the_workspace(api: Api) -> None:
    assert jobs.delay_seconds(api.workspace_id) == 0
    for name in ("a", "b"):
        api.post("contacts", {"external_id": name})
    rows("UPDATE jobs SET due_at = due_at - interval '1 minute' WHERE id = (SELECT min(id) FROM jobs)")

    assert 60 <= jobs.delay_seconds(api.workspace_id) < 120
    api.apply()
    assert jobs.delay_seconds(api.workspace_id) == 0
