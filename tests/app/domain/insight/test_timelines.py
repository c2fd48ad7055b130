from __future__ import annotations

import pytest

from app import database
from app.domain.insight import timelines
from app.domain.insight.timelines import Entry
from app.lib import ids
from tests.automations import carry_on
from tests.cast import Api, accept


@pytest.fixture
def contact_id(api: Api) -> str:
    """A contact with a write of each kind: changed, tagged, sold to, and carried through an automation."""
    api.endpoint(events=["contact.created", "tag.added"])
    automation_id = api.published({"id": "mark", "kind": "add_tag", "tag": "welcomed"})
    contact_id = str(api.contact(email="ada@example.com")["id"])
    api.done(api.post(f"contacts/{contact_id}/tags", {"name": "vip"}))
    api.sale(contact_id)
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    carry_on(api.workspace_id)
    api.apply()
    return contact_id


def shown(entries: list[Entry]) -> list[tuple[str, str]]:
    return [(entry.what, getattr(entry.row, "kind", entry.row.id[:3])) for entry in entries]


def everything(api: Api, contact_id: str, limit: int = 100) -> list[Entry]:
    return timelines.newest(api.workspace_id, contact_id, None, limit)


def test_everything_is_in_one_column_and_a_write_stands_below_what_came_of_it(api: Api, contact_id: str) -> None:
    entries = everything(api, contact_id)

    assert shown(entries)[-8:] == [
        ("event", "sale.recorded"),
        ("write", "sales.create"),
        ("delivery", "tag.added"),
        ("event", "tag.added"),
        ("write", "contacts.add_tag"),
        ("delivery", "contact.created"),
        ("event", "contact.created"),
        ("write", "contacts.upsert"),
    ]
    assert {what for what, _ in shown(entries)} == {"write", "event", "delivery", "run", "step"}
    assert ("step", "add_tag") in shown(entries)
    assert ("write", "automations.start") in shown(entries)
    assert [entry.place for entry in entries] == sorted((entry.place for entry in entries), reverse=True)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_pages_of_any_size_show_everything_once(api: Api, contact_id: str, size: int) -> None:
    whole, after, seen = everything(api, contact_id), None, list[Entry]()
    while page := timelines.newest(api.workspace_id, contact_id, after, size):
        assert len(page) <= size
        seen += page
        after = page[-1].place

    assert [entry.place for entry in seen] == [entry.place for entry in whole]
    assert shown(seen) == shown(whole)


@pytest.mark.parametrize("after", ["x", "", "9" * 27, "0" * 26 + "2", "'; DROP TABLE jobs", "0" * 26 + "~"])
def test_a_place_that_never_was_begins_at_the_newest(api: Api, contact_id: str, after: str) -> None:
    assert shown(timelines.newest(api.workspace_id, contact_id, after, 3)) == shown(everything(api, contact_id, 3))


def test_sources_are_chosen(api: Api, contact_id: str) -> None:
    def kinds(source: str) -> set[str]:
        return {entry.what for entry in timelines.newest(api.workspace_id, contact_id, None, 100, [source])}

    assert kinds("events") == {"event", "write"}
    assert kinds("deliveries") == {"delivery"}
    assert kinds("runs") == {"run", "step"}


def test_writes_that_failed_or_wait_are_there_too(api: Api, contact_id: str) -> None:
    api.contact(external_id="taken")
    accept(api.workspace_id, "contacts.update", {"external_id": "taken"}, contact_id)
    accept(
        api.workspace_id, "sales.create", {"contact_id": contact_id, "amount": "no", "currency": "EUR"}, ids.new("sal")
    )
    api.apply()
    accept(api.workspace_id, "contacts.add_tag", {"name": "later"}, contact_id)

    writes = [entry.row for entry in everything(api, contact_id) if entry.what == "write"]

    assert [(job.kind, job.status) for job in writes[:3]] == [
        ("contacts.add_tag", "queued"),
        ("sales.create", "failed"),
        ("contacts.update", "failed"),
    ]
    assert "problem" in writes[2].__data__


def test_other_workspaces_and_contacts_have_no_part_in_it(api: Api, others: Api, contact_id: str) -> None:
    other_id = api.contact(external_id="other")["id"]

    assert timelines.newest(others.workspace_id, contact_id, None, 100) == []
    assert {what for what, _ in shown(everything(api, other_id))} == {"event", "write", "delivery"}
    assert timelines.labels(others.workspace_id, everything(api, contact_id)) == {}


def test_a_timeline_names_endpoints_and_automations(api: Api, contact_id: str) -> None:
    labels = timelines.labels(api.workspace_id, everything(api, contact_id))

    assert sorted(labels.values()) == ["Welcome", "https://shop.example/hooks"]


def test_a_page_takes_five_statements(api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    execute = database.database.execute_sql
    monkeypatch.setattr(
        database.database, "execute_sql", lambda sql, params=None: (sent.append(str(sql)), execute(sql, params))[1]
    )

    everything(api, contact_id)

    assert len(sent) == 5, sent
