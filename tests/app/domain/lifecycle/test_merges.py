"""Two contacts become one: at once in whatever transaction asks, with what is large in a write that follows."""

from __future__ import annotations

from typing import Any

import pytest

from app import database
from app.database import rows, transaction
from app.domain.conversations import conversations, messages
from app.domain.lifecycle import merges
from app.domain.triggers import batches
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.lib import ids
from app.models import sets
from app.models.automations import Enrolment
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.identities import Identity
from app.models.runs import Run
from tests import talks
from tests.app.domain.lifecycle.merging import merge_at_once
from tests.cast import Api


@pytest.fixture
def kept(api: Api) -> dict[str, Any]:
    fields = {"external_id": "42", "first_name": "Ada", "tags": ["vip"], "custom_fields": {"size": "M"}}
    return api.contact(**fields)


@pytest.fixture
def other(api: Api) -> dict[str, Any]:
    fields = {"phone": "+4915112345678", "first_name": "A.", "last_name": "Lovelace", "tags": ["new", "vip"]}
    return api.contact(**fields, custom_fields={"size": "L", "hat": True}, opted_out=True)


def identify(api: Api, contact_id: str, external_id: str, kind: str = "whatsapp") -> str:
    identity_id = ids.new("idn")
    Identity.insert(
        id=identity_id,
        workspace_id=api.workspace_id,
        contact_id=contact_id,
        channel_kind=kind,
        external_id=external_id,
        address=f"{kind}:{external_id}",
        created_at=database.now(),
    ).execute()
    return identity_id


def merge(api: Api, kept_id: str, other_id: str) -> dict[str, Any]:
    return api.done(api.post(f"contacts/{kept_id}/merge", {"contact_id": other_id}))


def owners(table: str) -> set[str]:
    return {contact_id for (contact_id,) in rows(f"SELECT contact_id FROM {table} WHERE contact_id IS NOT NULL")}


def moved_to(contact_id: str) -> set[str]:
    return {id for (id,) in rows("SELECT id FROM conversations WHERE contact_id = %s", (contact_id,))}


def test_the_kept_contact_gets_what_it_does_not_have(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    job = merge(api, kept["id"], other["id"])
    assert (job["status"], job["resource"]["id"]) == ("succeeded", kept["id"])
    merged = api.show_contact(kept["id"])
    assert (merged["external_id"], merged["phone"]) == ("42", "+4915112345678")
    assert (merged["first_name"], merged["last_name"]) == ("Ada", "Lovelace")
    assert (merged["tags"], merged["custom_fields"]) == (["new", "vip"], {"size": "M", "hat": True})
    assert merged["opted_out"]
    assert api.get(f"contacts/{other['id']}").status_code == 404


def test_everything_of_the_other_moves(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    api.endpoint()
    api.sale(other["id"])
    api.booking(other["id"])
    channel_id = talks.make_channel(api.workspace_id)
    talks.add_note(api, talks.receive(api.workspace_id, other["id"], channel_id).conversation_id)
    talks.make_run(api.workspace_id, other["id"], status="completed", finished_at=database.now())
    identify(api, other["id"], "4915112345678")
    merge(api, kept["id"], other["id"])
    talked = ("conversations", "messages", "notes")
    for table in ("sales", "bookings", *talked, "runs", "identities", "events", "deliveries"):
        assert owners(table) == {kept["id"]}, table
    assert api.show_contact(kept["id"])["identities"] == [{"channel_kind": "whatsapp", "external_id": "4915112345678"}]


def test_an_event_names_who_is_gone(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    merge(api, kept["id"], other["id"])
    [event] = api.get("events?kind=contact.merged").json["data"]
    data = api.get(f"events/{event['id']}").json["data"]["body"]["data"]
    assert data["contact"]["phone"] == other["phone"]
    assert data["merged_contact_id"] == other["id"]


def test_parts_are_small_and_the_rest_follows(
    api: Api, kept: dict[str, Any], other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merges, "PART", 2)
    channel_id = talks.make_channel(api.workspace_id)
    for number in range(5):
        talks.receive(api.workspace_id, other["id"], channel_id, str(number))
    merge_at_once(api, kept["id"], other["id"])
    assert owners("conversations") == {kept["id"]}
    assert owners("messages") == {other["id"]}
    api.apply()
    assert owners("messages") == {kept["id"]}
    [job] = api.get("jobs?kind=contacts.merge").json["data"]
    assert job["status"] == "succeeded"


def test_earlier_conversations_follow_except_those_of_waiting_runs(
    api: Api, kept: dict[str, Any], other: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merges, "AT_ONCE", 1)
    monkeypatch.setattr(merges, "PART", 2)
    channel_ids = [talks.make_channel(api.workspace_id) for _ in range(6)]
    waited_for, *earlier, latest = [
        talks.receive(api.workspace_id, other["id"], channel_id).conversation_id for channel_id in channel_ids
    ]
    talks.make_run(api.workspace_id, other["id"], waits_for="reply", conversation_id=waited_for)
    merge_at_once(api, kept["id"], other["id"])
    assert moved_to(kept["id"]) == {waited_for, latest}
    api.apply()
    assert moved_to(kept["id"]) == {waited_for, *earlier, latest}


def test_a_merge_that_is_undone_moves_nothing(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    identify(api, other["id"], "4915112345678")
    talks.receive(api.workspace_id, other["id"], talks.make_channel(api.workspace_id))
    [result] = merge_at_once(api, kept["id"], other["id"], then=ValueError("no"))
    assert isinstance(result, ValueError)
    api.apply()
    assert owners("identities") == owners("conversations") == owners("messages") == {other["id"]}
    assert api.show_contact(other["id"])["phone"] == other["phone"]
    assert api.show_contact(kept["id"])["phone"] is None


def test_a_waiting_run_goes_on_with_the_kept_contact(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    channel_id = talks.make_channel(api.workspace_id)
    message = talks.receive(api.workspace_id, other["id"], channel_id)
    run_id = talks.make_run(
        api.workspace_id, other["id"], waits_for="reply", conversation_id=message.conversation_id, claim=3
    )
    rows("UPDATE conversations SET waiting_run_id = %s", (run_id,))
    merge(api, kept["id"], other["id"])
    run = Run.get_by_id(run_id)
    assert (run.contact_id, run.claim) == (kept["id"], 4)
    talks.receive(api.workspace_id, kept["id"], channel_id, "Yes")
    assert Run.get_by_id(run_id).answer["text"] == "Yes"


def test_the_next_message_goes_into_the_conversation_that_moved(
    api: Api, kept: dict[str, Any], other: dict[str, Any]
) -> None:
    channel_id = talks.make_channel(api.workspace_id)
    message = talks.receive(api.workspace_id, other["id"], channel_id)
    merge(api, kept["id"], other["id"])
    assert talks.receive(api.workspace_id, kept["id"], channel_id).conversation_id == message.conversation_id


def test_enrolments_add_up(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    both, only_other = ids.new("aut"), ids.new("aut")

    def enrol(contact_id: str, automation_id: str, run_id: str, active: int) -> None:
        Enrolment.insert(
            id=Enrolment.id_of(contact_id, automation_id),
            workspace_id=api.workspace_id,
            contact_id=contact_id,
            automation_id=automation_id,
            run_id=run_id,
            active=active,
        ).execute()

    enrol(kept["id"], both, "run_1", 1)
    enrol(other["id"], both, "run_2", 2)
    enrol(other["id"], only_other, "run_3", 0)
    merge(api, kept["id"], other["id"])
    found = {(each.id, each.contact_id, each.run_id, each.active) for each in Enrolment.select()}
    assert found == {
        (Enrolment.id_of(kept["id"], both), kept["id"], "run_2", 3),
        (Enrolment.id_of(kept["id"], only_other), kept["id"], "run_3", 0),
    }


def test_what_the_unit_has_already_changed_moves_too(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    channel_id = talks.make_channel(api.workspace_id)
    key = sets.key(Contact, api.workspace_id, "id", other["id"])

    def task(unit: Unit) -> Conversation:
        change = Change(api.workspace_id, {}, None, "test", None, Cause(None, "trace-1"), unit)
        message = messages.receive(change, unit.get(*key), channel_id, "Hello")
        merged = merges.merge(change, unit.get(*key._replace(value=kept["id"])), unit.get(*key))
        assert conversations.most_recent(unit, api.workspace_id, merged.id).id == message.conversation_id
        return conversations.open_for(change, merged, channel_id)

    with transaction():
        [opened] = batches.run([task], [key, key._replace(value=kept["id"])])
    assert opened.contact_id == kept["id"]
    assert owners("conversations") == owners("messages") == {kept["id"]}
    assert Conversation.select().count() == Message.select().count() == 1


def test_merges_are_refused_that_make_no_sense(
    api: Api, others: Api, kept: dict[str, Any], other: dict[str, Any]
) -> None:
    path = f"contacts/{kept['id']}/merge"
    for wrong in (kept["id"], ids.new("con"), others.contact(email="b@example.com")["id"], "con_1"):
        refused = api.post(path, {"contact_id": wrong})
        assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "/contact_id")
    assert api.post(path, {}).status_code == 422
    assert api.post(path, {"contact_id": other["id"], "is_merged": True}).status_code == 422
    assert api.post(f"contacts/{ids.new('con')}/merge", {"contact_id": other["id"]}).status_code == 404
    assert others.post(path, {"contact_id": other["id"]}).status_code == 404


def test_of_two_merges_in_opposite_directions_one_fails(api: Api, kept: dict[str, Any], other: dict[str, Any]) -> None:
    first = api.post(f"contacts/{kept['id']}/merge", {"contact_id": other["id"]})
    second = api.post(f"contacts/{other['id']}/merge", {"contact_id": kept["id"]})
    api.apply()
    assert [api.job(each)["status"] for each in (first, second)] == ["succeeded", "failed"]
    assert api.get(f"contacts/{kept['id']}").status_code == 200


def test_a_suggestion_is_shown_with_both_until_they_are_one(
    api: Api, kept: dict[str, Any], other: dict[str, Any]
) -> None:
    third = api.contact(email="third@example.com")

    def suggest(first: str, second: str, reason: str) -> None:
        talks.locked(
            api.workspace_id,
            first,
            lambda unit, contact: merges.suggest(unit, api.workspace_id, contact.id, second, reason),
        )

    suggest(kept["id"], other["id"], "same_name")
    suggest(other["id"], kept["id"], "same_name")
    suggest(third["id"], other["id"], "same_phone")
    assert api.show_contact(kept["id"])["suggested_merges"] == [{"contact_id": other["id"], "reason": "same_name"}]
    assert len(api.show_contact(other["id"])["suggested_merges"]) == 2
    merge(api, kept["id"], other["id"])
    assert api.show_contact(kept["id"])["suggested_merges"] == [{"contact_id": third["id"], "reason": "same_phone"}]
    assert api.show_contact(third["id"])["suggested_merges"] == [{"contact_id": kept["id"], "reason": "same_phone"}]


def test_what_follows_a_contact_that_was_deleted_is_erased(
    api: Api, kept: dict[str, Any], other: dict[str, Any]
) -> None:
    talks.receive(api.workspace_id, other["id"], talks.make_channel(api.workspace_id), "My secret")
    api.booking(other["id"])
    api.delete(f"contacts/{kept['id']}")
    merge_at_once(api, kept["id"], other["id"])
    api.apply()
    assert owners("messages") == {kept["id"]}
    assert rows("SELECT text FROM messages") == [(None,)]
    assert not rows("SELECT 1 FROM bookings")
    assert not rows("SELECT 1 FROM events WHERE convert_from(body, 'UTF8') LIKE '%%My secret%%'")


def test_what_follows_a_contact_that_is_part_of_a_third_reaches_that(
    api: Api, kept: dict[str, Any], other: dict[str, Any]
) -> None:
    third = api.contact(email="third@example.com")
    talks.receive(api.workspace_id, other["id"], talks.make_channel(api.workspace_id), "Hello")
    merge_at_once(api, kept["id"], other["id"])
    merge_at_once(api, third["id"], kept["id"])
    api.apply()
    assert rows("SELECT contact_id, text FROM messages") == [(third["id"], "Hello")]
    assert api.show_contact(third["id"])["external_id"] == "42"
