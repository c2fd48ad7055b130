"""Notes in the API: adding, listing, showing and deleting them, and keeping them inside the workspace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import notes
from app.lib import ids
from tests.automations import carry_on
from tests.cast import Api, everything_stored, one
from tests.talks import add_note, close, make_channel, make_member, receive

SECRET = "Quince-marmalade <script>alert(1)</script>"


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com", first_name="<b>Ada</b>")["id"])


@pytest.fixture
def conversation_id(api: Api, contact_id: str) -> str:
    return str(receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id)


def listed(api: Api, conversation_id: str, query: str = "") -> list[str]:
    return [each["id"] for each in api.get(f"conversations/{conversation_id}/notes{query}").json["data"]]


def test_a_note_is_added_listed_and_shown(api: Api, conversation_id: str) -> None:
    member_id = make_member(api.workspace_id)

    note_id = add_note(api, conversation_id, SECRET, mentions=[member_id])

    [shown] = api.get(f"conversations/{conversation_id}/notes").json["data"]
    assert shown == {
        "id": note_id,
        "conversation_id": conversation_id,
        "text": SECRET,
        "mentions": [member_id],
        "author": {"type": "api", "id": api.get("/api/v1/auth/me").json["data"]["token"]["id"]},
        "created_at": shown["created_at"],
    }
    assert api.get(f"notes/{note_id}").json["data"] == shown
    assert one("SELECT member_id FROM notifications WHERE kind = 'mentioned'") == member_id


def test_the_job_names_the_note_at_once(api: Api, conversation_id: str) -> None:
    accepted = api.post(f"conversations/{conversation_id}/notes", {"text": "Called."})

    resource = accepted.json["data"]["resource"]
    assert accepted.status_code == 202
    assert (resource["type"], resource["id"][:4]) == ("note", "nte_")
    assert resource["url"].endswith(f"/notes/{resource['id']}")
    assert listed(api, conversation_id) == []
    api.apply()
    assert listed(api, conversation_id) == [resource["id"]]


def test_a_closed_conversation_takes_notes(api: Api, contact_id: str, conversation_id: str) -> None:
    close(api.workspace_id, contact_id)

    note_id = add_note(api, conversation_id)

    assert listed(api, conversation_id) == [note_id]
    assert api.get(f"conversations/{conversation_id}").json["data"]["status"] == "closed"


def test_the_list_is_newest_first_and_goes_on_where_its_page_ended(api: Api, conversation_id: str) -> None:
    added = [add_note(api, conversation_id, str(number)) for number in range(3)]

    first = api.get(f"conversations/{conversation_id}/notes?limit=2").json

    assert [each["id"] for each in first["data"]] == added[:0:-1]
    assert listed(api, conversation_id, f"?limit=2&cursor={first['meta']['nextCursor']}") == added[:1]


def test_a_note_is_deleted_once_whoever_wrote_it(api: Api, conversation_id: str) -> None:
    note_id = add_note(api, conversation_id)
    other = api.restricted_to("inbox")

    first, behind = other.delete(f"notes/{note_id}"), other.delete(f"notes/{note_id}")
    api.apply()

    assert api.job(first)["status"] == "succeeded"
    assert api.job(behind)["problem"]["status"] == 404
    assert other.delete(f"notes/{note_id}").status_code == 404
    assert api.get(f"notes/{note_id}").status_code == 404
    assert listed(api, conversation_id) == []


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, "/text"),
        ({"text": None}, "/text"),
        ({"text": 7}, "/text"),
        ({"text": ""}, "/text"),
        ({"text": " \n"}, "/text"),
        ({"text": "a\0b"}, "/text"),
        ({"text": "x" * 10_001}, "/text"),
        ({"text": "Hello", "mentions": "mem_1"}, "/mentions"),
        ({"text": "Hello", "mentions": None}, "/mentions"),
        ({"text": "Hello", "mentions": [7]}, "/mentions/0"),
        ({"text": "Hello", "mentions": ["me"]}, "/mentions/0"),
        ({"text": "Hello", "mentions": ["mem_01kaj5bd40e6rr3f5y2kq0w9xz"] * 21}, "/mentions"),
        ({"text": "Hello", "author": {"type": "member", "id": "mem_1"}}, "/author"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_note_is_pointed_at(api: Api, conversation_id: str, body: dict[str, Any], at: str) -> None:
    refused = api.post(f"conversations/{conversation_id}/notes", body)

    assert refused.status_code == 422
    assert [each["pointer"] for each in refused.get_json(force=True)["errors"]] == [at]


def test_only_members_of_the_workspace_can_be_mentioned(api: Api, others: Api, conversation_id: str) -> None:
    known = make_member(api.workspace_id)
    for stranger in (make_member(others.workspace_id), ids.new("mem")):
        refused = api.post(f"conversations/{conversation_id}/notes", {"text": "Hi", "mentions": [known, stranger]})

        assert refused.status_code == 422
        assert [each["pointer"] for each in refused.get_json(force=True)["errors"]] == ["/mentions/1"]
    assert one("SELECT count(*) FROM notifications WHERE kind = 'mentioned'") == 0


def test_a_full_conversation_takes_no_more(api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_NOTES", 1)
    add_note(api, conversation_id)

    assert api.post(f"conversations/{conversation_id}/notes", {"text": "Another"}).status_code == 409


def test_a_conversation_whose_contact_is_deleted_takes_no_note(api: Api, contact_id: str, conversation_id: str) -> None:
    accepted = api.delete(f"contacts/{contact_id}")
    added = api.post(f"conversations/{conversation_id}/notes", {"text": SECRET})
    api.done(accepted)

    assert api.job(added)["problem"]["status"] == 404
    assert "Quince" not in everything_stored()


def test_a_note_is_in_no_event_no_message_and_no_template(api: Api, contact_id: str, conversation_id: str) -> None:
    api.endpoint()
    text = "{{ conversation.notes }}{{ contact.notes }}."
    refused = api.post(
        "automations", {"name": "Leak", "definition": {"steps": [{"id": "leak", "kind": "send_message", "text": text}]}}
    )
    automation_id = api.published({"id": "note", "kind": "add_note", "text": SECRET})
    before = one("SELECT count(*) FROM messages")

    add_note(api, conversation_id, SECRET)
    api.done(api.patch(f"conversations/{conversation_id}", {"status": "closed"}))
    api.done(api.patch(f"contacts/{contact_id}", {"last_name": "Lovelace"}))
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    carry_on(api.workspace_id)

    assert one("SELECT count(*) FROM notes") == 2
    assert refused.status_code == 422
    assert one("SELECT count(*) FROM messages") == before
    assert one("SELECT count(*) FROM events WHERE position('Quince' IN convert_from(body, 'UTF8')) > 0") == 0
    for path in (f"contacts/{contact_id}", f"conversations/{conversation_id}", "messages", "events"):
        assert "Quince" not in api.get(path).text


def test_a_note_makes_no_live_update_but_its_own(api: Api, conversation_id: str) -> None:
    rows("DELETE FROM updates")

    note_id = add_note(api, conversation_id, SECRET)

    assert rows("SELECT kind, subject_id FROM updates WHERE kind <> 'job'") == [("note", note_id)]


def test_an_export_has_the_notes(api: Api, contact_id: str, conversation_id: str) -> None:
    note_id = add_note(api, conversation_id, SECRET)

    exported = json.loads(api.get(f"contacts/{contact_id}/export").data)["data"]["notes"]

    assert exported == [api.get(f"notes/{note_id}").json["data"]]


def test_an_erased_contact_has_no_notes(api: Api, contact_id: str, conversation_id: str) -> None:
    add_note(api, conversation_id, SECRET)

    api.done(api.delete(f"contacts/{contact_id}"))

    assert listed(api, conversation_id) == []
    assert one("SELECT count(*) FROM notes") == 0


def test_a_merged_contact_brings_its_notes(api: Api, contact_id: str, conversation_id: str) -> None:
    note_id, kept = add_note(api, conversation_id), api.contact(external_id="kept")["id"]

    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": contact_id}))

    assert one("SELECT contact_id FROM notes") == kept
    assert listed(api, conversation_id) == [note_id]
