"""The ways to find a page of contacts: each finds the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import database
from app.lib import ids
from app.models import contacts
from app.models.contacts import Contact
from tests.cast import Api

START, HOUR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1)


@pytest.fixture
def forty(api: Api, others: Api) -> None:
    """A contact each hour, the newest ten of another sort; every fourth has changed since. Others have as many."""
    for workspace_id, first in ((api.workspace_id, START), (others.workspace_id, START + HOUR / 2)):
        for number in range(40):
            at = first + number * HOUR
            sort = "early" if number < 30 else "late"
            changed_at = START + 100 * HOUR if number % 4 == 0 else at
            database.rows(
                "INSERT INTO contacts (id, workspace_id, external_id, first_name, tags, created_at, updated_at)"
                " VALUES (%s, %s, %s, %s, ARRAY['all', %s], %s, %s)",
                (ids.bound("con", at), workspace_id, f"c-{number}", sort.title(), sort, at, changed_at),
            )


@pytest.mark.parametrize("looked_at", [2, 5_000], ids=["few of the newest are looked at", "all are looked at"])
@pytest.mark.parametrize("many", [-1, 100_000], ids=["looked through on", "by index"])
@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({"tag": "all"}, lambda number: True),
        ({"tag": "early"}, lambda number: number < 30),
        ({"tag": "none"}, lambda number: False),
        ({"q": "EARLY"}, lambda number: number < 30),
        ({"q": "%"}, lambda number: False),
        ({"q": "c-1", "tag": "early"}, lambda number: number in (1, *range(10, 20))),
        ({"updated_since": START + 35 * HOUR}, lambda number: number >= 35 or number % 4 == 0),
        ({"updated_since": START + 99 * HOUR}, lambda number: number % 4 == 0),
        ({"updated_since": START + 101 * HOUR}, lambda number: False),
        (
            {"updated_since": START + 25 * HOUR, "tag": "early"},
            lambda number: number < 30 and (number >= 25 or number % 4 == 0),
        ),
        ({"updated_since": START + 5 * HOUR, "external_id": "c-7", "q": "early"}, lambda number: number == 7),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.usefixtures("forty")
def test_every_way_finds_all_that_match_once_newest_first(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, Any],
    matches: Callable[[int], bool],
    many: int,
    looked_at: int,
) -> None:
    monkeypatch.setattr(contacts, "LOOKED_AT", looked_at)
    monkeypatch.setattr(contacts, "MANY", many)

    found = list(paged(api.workspace_id, filters))

    assert found == [f"c-{number}" for number in reversed(range(40)) if matches(number)]


def paged(workspace_id: str, filters: dict[str, Any]) -> Iterator[str]:
    last_id: str | None = None
    while page := Contact.newest(workspace_id, filters, last_id, 4):
        yield from (contact.external_id for contact in page)
        last_id = page[-1].id
