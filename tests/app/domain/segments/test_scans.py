"""Scans find the contacts of a segment, in parts of a bounded cost."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.database import now, rows
from app.domain.segments import scans
from app.domain.segments.scans import Scan
from app.domain.segments.translations import TURNING_ASCII
from app.domain.triggers import conditions
from app.domain.triggers.conditions import holds
from app.lib import ids
from app.models.contacts import Contact
from tests.app.domain.segments.test_translations import CONDITIONS, TEXT, undone
from tests.cast import Api, indexes_used, one
from tests.talks import make_channel, receive, write

VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
# What SQL leaves to Python.
STARTS_WITH_V = {"field": "contact.tags", "is": "matches", "value": "^v"}


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def make(api: Api, number: int, **fields: Any) -> list[str]:
    """Contacts, newest first."""
    return [
        api.contact(**{"external_id": f"c-{rows('SELECT count(*) FROM contacts')[0][0]}", **fields})["id"]
        for _ in range(number)
    ][::-1]


def ids_of(workspace_id: str, condition: dict[str, Any], **options: Any) -> list[str]:
    return [each for part in Scan(workspace_id, condition, **options).parts(60) for each in part.ids]


@pytest.mark.parametrize("condition", [VIP, STARTS_WITH_V])
def test_both_ways_find_the_same(api: Api, monkeypatch: pytest.MonkeyPatch, condition: dict[str, Any]) -> None:
    for name in ("_FIRST_ROWS", "_LEAST_ROWS", "_COMPARISONS"):
        monkeypatch.setattr(scans, name, 2)
    found = make(api, 3, tags=["vip"]) + make(api, 2)
    found = make(api, 2, tags=["VIP"]) + found[:3]

    assert ids_of(api.workspace_id, condition) == found
    assert ids_of(api.workspace_id, condition, is_newest_first=False) == found[::-1]


# Tags that are equal to each other as conditions compare them, or nearly.
ALIKE = [
    *("vip", " VIP", "vip\u3000", "v\u0131p", "fi", "\ufb01", "FI"),
    *("\uff36\uff29\uff30", "VI\u200bP", "vi\u0301p", "v\u00edp", "ΚΑΦΕΣ", "καφές", "BİLGİ", "bilgi"),
    *("straße", "STRASSE", "é vip", "É VIP", "évip", "10", "10.0"),
]
TAG = st.sampled_from(ALIKE) | TEXT.filter(bool)
TAGS = st.lists(TAG, max_size=3, unique=True)
HAS_TAG = st.builds(lambda value: {"field": "contact.tags", "is": "contains", "value": value}, TAG)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TAGS, min_size=1, max_size=6), HAS_TAG, CONDITIONS, st.integers(1, 3))
def test_contacts_are_found_by_their_tags_in_every_segment_and_order(
    api: Api, tags: list[list[str]], has_tag: dict[str, Any], other: dict[str, Any], size: int
) -> None:
    condition = {"all": [has_tag, {"any": [other, {"not": other}]}]}
    if list(conditions.faults(condition)):
        return
    with undone(), pytest.MonkeyPatch.context() as patch:
        for name in ("_FIRST_ROWS", "_LEAST_ROWS", "_COMPARISONS"):
            patch.setattr(scans, name, size)
        for place, each in enumerate(tags):
            insert(api.workspace_id, each, segment=place // 2)
        stored = list(Contact.select().order_by(Contact.id.desc()))
        expected = [each.id for each in stored if holds(has_tag, scans.variables(each, {}))]

        assert ids_of(api.workspace_id, condition) == expected
        assert ids_of(api.workspace_id, condition, is_newest_first=False) == expected[::-1]
        for place, last_id in enumerate(expected, start=1):
            rest = [each for part in Scan(api.workspace_id, condition).parts(60, last_id) for each in part.ids]
            assert rest == expected[place:]


@pytest.mark.parametrize("value", ALIKE)
def test_a_tag_is_found_however_it_is_written(api: Api, value: str) -> None:
    for place, tag in enumerate(ALIKE):
        insert(api.workspace_id, [tag], segment=place // 5)
    condition = {"field": "contact.tags", "is": "contains", "value": value}
    stored = Contact.select().order_by(Contact.id.desc())

    assert ids_of(api.workspace_id, condition) == [
        each.id for each in stored if holds(condition, scans.variables(each, {}))
    ]


def insert(workspace_id: str, tags: list[str], segment: int) -> None:
    """A contact in that segment of contacts, which begins with it if it is new."""
    contact_id = ids.new("con")
    Contact.insert(id=contact_id, workspace_id=workspace_id, tags=tags, segment=segment).execute()
    if segment:
        begin = "INSERT INTO contact_segments VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        rows(f"{begin} RETURNING 1", (workspace_id, segment, contact_id))


def test_tags_that_may_fold_into_ascii_share_a_search_key() -> None:
    keys = "contact_keys('ws_1', 0, '', ARRAY[%s])"

    for each in TURNING_ASCII.replace("-", ""):
        assert one(f"SELECT {keys} && {keys}", f"vi{each}p", "ß"), each
    for each in ("vip", "é", "ς"):
        assert not one(f"SELECT {keys} && {keys}", each, "ß"), each


def test_only_contacts_with_the_key_of_a_needed_tag_are_looked_at(api: Api) -> None:
    make(api, 2, tags=["vip"])
    make(api, 5, tags=["other"])
    condition = {"all": [{"field": "contact.created_at", "is": "exists"}, {"all": [VIP]}]}

    assert looked_at(api.workspace_id, condition) == 2
    for unhelpful in ({"not": VIP}, {"any": [VIP, condition]}, STARTS_WITH_V, {**VIP, "value": 10}):
        assert looked_at(api.workspace_id, unhelpful) == 7


def looked_at(workspace_id: str, condition: dict[str, Any]) -> int:
    query = scans._Query(Scan(workspace_id, condition))
    return int(rows(query._sql, {**query._values, "after": "con_~", "size": 100})[0][0])


def test_nothing_of_another_workspace_is_found(api: Api, others: Api) -> None:
    make(others, 1, tags=["vip"])

    assert ids_of(api.workspace_id, VIP) == []
    assert scans.count(api.workspace_id, VIP) == scans.Counted(0, True, [])


def test_letters_beyond_ascii_are_compared_as_python_does(api: Api) -> None:
    [strasse] = make(api, 1, last_name="STRASSE", custom_fields={"street": "Straße"})

    for field in ("contact.last_name", "contact.custom_fields.street"):
        assert ids_of(api.workspace_id, {"field": field, "is": "equals", "value": "straße"}) == [strasse]


def test_messages_and_identities_can_be_named(api: Api) -> None:
    wrote, silent = make(api, 2)
    channel_id = make_channel(api.workspace_id)
    receive(api.workspace_id, wrote, channel_id)
    rows("UPDATE messages SET created_at = created_at - interval '10 days' RETURNING 1")
    write(api.workspace_id, wrote, "mem_1")
    rows("UPDATE messages SET sent_at = now() WHERE direction = 'out' RETURNING 1")
    insert = "INSERT INTO identities (id, workspace_id, contact_id, channel_kind, external_id, address) VALUES"
    rows(f"{insert} ('idn_1', %s, %s, 'telegram', '1', 'telegram:1') RETURNING 1", (api.workspace_id, wrote))

    def of(field: str, comparison: str, **value: Any) -> list[str]:
        return ids_of(api.workspace_id, {"field": f"contact.{field}", "is": comparison, **value})

    assert of("last_received_at", "less_than", days_ago=9) == [wrote]
    assert of("last_received_at", "less_than", days_ago=11) == []
    assert of("last_received_at", "not_exists") == [silent]
    assert of("last_sent_at", "greater_than", days_ago=1) == [wrote]
    assert of("channel_kinds", "contains", value="telegram") == [wrote]
    assert of("channel_kinds", "has_word", value="Telegram") == [wrote]
    assert of("last_sent_at", "starts_with", value="20") == [wrote]


def test_contacts_that_came_later_are_left_out(api: Api) -> None:
    [early] = make(api, 1, tags=["vip"])
    began_at = now()
    make(api, 1, tags=["vip"])

    assert ids_of(api.workspace_id, VIP, at=began_at) == [early]


def test_days_are_counted_from_the_time_that_is_given(api: Api) -> None:
    [contact_id] = make(api, 1)
    old = {"field": "contact.created_at", "is": "less_than", "days_ago": 3}

    assert ids_of(api.workspace_id, old) == []
    assert ids_of(api.workspace_id, old, at=now() + timedelta(days=4)) == [contact_id]


def test_a_count_has_the_newest_as_a_sample(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "SAMPLE", 2)
    found = make(api, 3, tags=["vip"])

    counted = scans.count(api.workspace_id, VIP)

    assert (counted.count, counted.is_complete) == (3, True)
    assert [each.id for each in counted.sample] == found[:2]


@pytest.mark.parametrize("condition", [VIP, STARTS_WITH_V])
def test_a_count_ends_when_its_time_is_over(
    api: Api, monkeypatch: pytest.MonkeyPatch, condition: dict[str, Any]
) -> None:
    for name, value in {"_FIRST_ROWS": 4, "_LEAST_ROWS": 4, "_TOGETHER": 1, "MOST_COUNTED_SECONDS": 0}.items():
        monkeypatch.setattr(scans, name, value)
    make(api, 6, tags=["vip"])

    counted = scans.count(api.workspace_id, condition)

    assert (counted.count, counted.is_complete) == (4 if condition is VIP else 1, False)


@pytest.mark.parametrize("condition", [VIP, STARTS_WITH_V])
@pytest.mark.parametrize("together", [1, 2, 3])
def test_pages_that_end_early_go_on_where_they_ended(
    api: Api, monkeypatch: pytest.MonkeyPatch, condition: dict[str, Any], together: int
) -> None:
    for name, value in {"_FIRST_ROWS": 4, "_LEAST_ROWS": 4, "_TOGETHER": together, "MOST_LISTED_SECONDS": 0}.items():
        monkeypatch.setattr(scans, name, value)
    found: list[str] = []
    for number in range(9):
        found = make(api, 1, tags=["vip"] if number % 3 else ["other"]) + found
    expected = [each for number, each in enumerate(found) if (8 - number) % 3]

    pages, last_id = [], None
    while True:
        page, last_id = scans.page(api.workspace_id, condition, {}, last_id, 3)
        pages.append([contact.id for contact in page])
        if last_id is None:
            break

    assert [each for page in pages for each in page] == expected
    assert max(map(len, pages)) <= 3


def test_the_filters_of_the_list_have_to_be_met_too(api: Api) -> None:
    [ada] = make(api, 1, tags=["vip", "new"], email="ada@example.com")
    make(api, 1, tags=["vip"])
    make(api, 1, tags=["new"])

    for condition in (VIP, STARTS_WITH_V):
        for filters in ({"tag": "new"}, {"email": "ADA@example.com"}, {"q": "ada@"}):
            page, last_id = scans.page(api.workspace_id, condition, filters, None, 10)
            assert ([contact.id for contact in page], last_id) == ([ada], None)


def test_a_part_reads_what_contacts_lack_by_index(api: Api) -> None:
    rows(
        "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, status, author, sent_at,"
        " created_at) SELECT 'msg_' || n, 'ws_1', 'cnv_1', 'con_' || n, CASE mod(n, 2) WHEN 0 THEN 'in' ELSE 'out' END,"
        " 'sent', '{}', CASE mod(n, 2) WHEN 1 THEN now() END, now() FROM generate_series(1, 5000) AS n RETURNING 1"
    )
    rows("ANALYZE messages")
    condition = {
        "all": [
            VIP,
            {"field": "contact.last_received_at", "is": "exists"},
            {"field": "contact.last_sent_at", "is": "exists"},
            {"field": "contact.channel_kinds", "is": "exists"},
        ]
    }
    query = scans._Query(Scan(api.workspace_id, condition))
    statement = SimpleNamespace(sql=lambda: (query._sql, {**query._values, "after": "con_~", "size": 5_000}))

    used = indexes_used(statement)

    assert {"messages_received", "messages_sent_to", "identities_contact"} <= used
