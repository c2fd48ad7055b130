"""A page of contacts is the same whatever segments these are cut into."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import database
from app.domain.lifecycle import imports
from app.lib import ids
from app.mailbox import serving
from app.models import contacts
from app.models.contacts import Contact
from tests import cast
from tests.cast import Api, all_of, in_threads, one

START, HOUR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=1)
# Without cuts; with one; into equal ones; with some that are empty, below, between and above the contacts.
CUTS = [[], [20], [7, 14, 21, 28, 35], [0, 0, 1, 30, 30, 30, 38, 39, 40, 50]]


@pytest.fixture(params=CUTS, ids=str)
def forty(request: pytest.FixtureRequest, api: Api, others: Api) -> None:
    """A contact each hour, the newest ten of another sort; every fourth has changed since. Others have as many."""
    for workspace_id, first in ((api.workspace_id, START), (others.workspace_id, START + HOUR / 2)):
        for number, cut in enumerate(request.param, 1):
            database.rows(
                "INSERT INTO contact_segments (workspace_id, number, from_id) VALUES (%s, %s, %s)",
                (workspace_id, number, ids.bound("con", first + cut * HOUR)),
            )
        for number in range(40):
            at = first + number * HOUR
            sort = "early" if number < 30 else "late"
            changed_at = START + 100 * HOUR if number % 4 == 0 else at
            database.rows(
                "INSERT INTO contacts"
                " (id, workspace_id, external_id, first_name, tags, segment, created_at, updated_at)"
                " VALUES (%s, %s, %s, %s, ARRAY['all', %s], %s, %s, %s)",
                (
                    *(ids.bound("con", at), workspace_id, f"c-{number}", sort.title(), sort),
                    *(sum(cut <= number for cut in request.param), at, changed_at),
                ),
            )


@pytest.mark.parametrize("looked_at", [2, 500], ids=["few of the newest are looked at", "all are looked at"])
@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({"tag": "all"}, lambda number: True),
        ({"tag": "early"}, lambda number: number < 30),
        ({"tag": "none"}, lambda number: False),
        ({"q": "EARLY"}, lambda number: number < 30),
        ({"q": "ea"}, lambda number: number < 30),
        ({"q": "ly  "}, lambda number: number < 30),
        ({"q": "arly    c-1"}, lambda number: number in (1, *range(10, 20))),
        ({"q": "early    c-12"}, lambda number: number == 12),
        ({"q": "early c-12"}, lambda number: False),
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
        ({"external_id": "c-7", "q": "late"}, lambda number: False),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
@pytest.mark.usefixtures("forty")
def test_all_that_match_are_found_once_newest_first(
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, Any],
    matches: Callable[[int], bool],
    looked_at: int,
) -> None:
    monkeypatch.setattr(contacts, "LOOKED_AT", looked_at)

    found = list(paged(api.workspace_id, filters))

    assert found == [f"c-{number}" for number in reversed(range(40)) if matches(number)]


def paged(workspace_id: str, filters: dict[str, Any]) -> Iterator[str]:
    last_id: str | None = None
    while page := Contact.newest(workspace_id, filters, last_id, 4):
        yield from (contact.external_id for contact in page)
        last_id = page[-1].id


@pytest.mark.parametrize("length", [*range(2, 12), 100])
def test_a_text_of_any_length_is_found_wherever_it_begins(
    api: Api, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(contacts, "LOOKED_AT", 0)
    api.contact(external_id="".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=130)))
    [text] = all_of("SELECT search FROM contacts")

    for begin in range(len(text) - length + 1):
        assert Contact.newest(api.workspace_id, {"q": text[begin : begin + length]}, None, 4)


@pytest.mark.parametrize("looked_at", [0, 200])
def test_a_tag_is_found_that_is_equal_to_a_reader(api: Api, monkeypatch: pytest.MonkeyPatch, looked_at: int) -> None:
    monkeypatch.setattr(contacts, "LOOKED_AT", looked_at)
    tags = ["vip", "\uff36\uff29\uff30", "Café", "BİLGİ", "Straße", "ΠΕΛΑΤΗΣ", "vip 2", "cafe", "日本"]
    for number, tag in enumerate(tags):
        api.contact(external_id=f"c-{number}", tags=[tag])

    for sought, places in (
        *(("VIP", [1, 0]), ("\uff56\uff49\uff50", [1, 0]), ("cafe\u0301", [2]), ("CAFÉ", [2]), ("bilgi", [3])),
        *(("STRASSE", [4]), ("πελάτης", [5]), ("cafe", [7]), ("日本", [8]), ("日", []), ("vi", [])),
    ):
        assert list(paged(api.workspace_id, {"tag": sought})) == [f"c-{place}" for place in places], sought


# New segments


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment is full with five contacts, and counted before each, and all are found by index."""
    monkeypatch.setattr(contacts, "LOOKED_AT", 0)
    monkeypatch.setattr(contacts, "SEGMENT_SIZE", 5)
    monkeypatch.setattr(contacts, "COUNTED_EVERY", 1)


def misplaced() -> list[str]:
    """The contacts that are of another segment than their identifier says."""
    return all_of(
        """
        SELECT id FROM contacts WHERE segment <> coalesce((
            SELECT max(number) FROM contact_segments
            WHERE workspace_id = contacts.workspace_id AND from_id <= contacts.id), 0)
        """
    )


def sizes(workspace_id: str) -> list[int]:
    """How many contacts each segment has that has any, oldest first."""
    return all_of(
        "SELECT count(*) FROM contacts WHERE workspace_id = %s GROUP BY segment ORDER BY segment", workspace_id
    )


@pytest.mark.usefixtures("small")
def test_a_segment_begins_where_the_newest_is_full(api: Api, others: Api) -> None:
    for number in range(12):
        api.contact(external_id=f"c-{number}", tags=["all"])
        others.contact(external_id=f"c-{number}", tags=["all"])

    assert sizes(api.workspace_id) == sizes(others.workspace_id) == [5, 5, 2]
    assert misplaced() == []
    assert list(paged(api.workspace_id, {"tag": "all"})) == [f"c-{number}" for number in reversed(range(12))]


@pytest.mark.usefixtures("small")
def test_a_contact_keeps_its_segment_when_it_changes(api: Api) -> None:
    made = [api.contact(external_id=f"c-{number}") for number in range(12)]

    api.done(api.patch(f"contacts/{made[3]['id']}", {"first_name": "Ada", "tags": ["vip"]}))
    api.contact(external_id="c-8", last_name="Ada")

    assert misplaced() == []
    assert list(paged(api.workspace_id, {"q": "ada"})) == ["c-8", "c-3"]
    assert list(paged(api.workspace_id, {"tag": "vip"})) == ["c-3"]


@pytest.mark.usefixtures("small")
def test_a_segment_whose_contacts_were_deleted_hides_none(api: Api) -> None:
    made = [api.contact(external_id=f"c-{number}", tags=["all"]) for number in range(12)]
    for contact in made[3:12]:
        api.done(api.delete(f"contacts/{contact['id']}"))
    api.contact(external_id="c-12", tags=["all"])

    assert misplaced() == []
    assert list(paged(api.workspace_id, {"tag": "all"})) == ["c-12", "c-2", "c-1", "c-0"]


@pytest.mark.usefixtures("small")
def test_contacts_of_machines_whose_clocks_differ_are_found_in_their_order(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = random.Random(1).sample(range(60), 60)
    made = iter([ids.bound("con", START + place * HOUR / 60) for place in order])
    real = ids.new
    monkeypatch.setattr(ids, "new", lambda prefix: next(made) if prefix == "con" else real(prefix))

    for place in order:
        api.contact(external_id=f"c-{place}", tags=["all"])

    assert len(sizes(api.workspace_id)) > 1
    assert misplaced() == []
    assert list(paged(api.workspace_id, {"tag": "all"})) == [f"c-{place}" for place in reversed(range(60))]


@pytest.mark.usefixtures("small")
def test_workers_that_race_in_imports_and_writes_place_every_contact(
    api: Api, others: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "BATCH", 7)
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    for caller in (api, others):
        for first in (0, 50, 100):
            lines = "\n".join(f'{{"external_id": "c-{number}"}}' for number in range(first, first + 40))
            caller.post("contacts/import", data=lines, content_type="application/x-ndjson")
            for number in range(first + 40, first + 50):
                caller.post("contacts", {"external_id": f"c-{number}"})

    in_threads([lambda caller=caller: cast.apply(caller.workspace_id) for caller in (api, others) * 3])
    for caller in (api, others):
        caller.apply()

    for caller in (api, others):
        *full, _ = held = sizes(caller.workspace_id)
        # One is full with five, and a batch of lines or writes goes into the one that is open when it begins.
        assert len(held) > 10
        assert min(full) >= 5
        assert max(held) < 5 + 10
        opened = one("SELECT count(*) FROM contact_segments WHERE workspace_id = %s", caller.workspace_id)
        assert opened == len(held) - 1
        assert sorted(paged(caller.workspace_id, {"q": "c-"})) == sorted(f"c-{number}" for number in range(150))
    assert misplaced() == []
