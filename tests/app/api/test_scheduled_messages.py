"""Messages that are sent later, in the API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.database import rows
from tests.cast import KEY, Api, event_kinds, one, row_counts
from tests.later import TOMORROW, go, schedule
from tests.talks import make_channel, receive
from tests.wires import WIRE

IN_MS = "%Y-%m-%dT%H:%M:%S.000Z"


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(phone="+4930123456")["id"])


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_channel(api.workspace_id)


@pytest.fixture
def talk(api: Api, contact_id: str, channel_id: str) -> str:
    return str(receive(api.workspace_id, contact_id, channel_id).conversation_id)


def shown(api: Api, message_id: str) -> dict[str, Any]:
    return dict(api.get(f"messages/{message_id}").json["data"])


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).isoformat()


def test_it_is_shown_as_scheduled(api: Api, talk: str) -> None:
    kinds = event_kinds(api.workspace_id)

    message = shown(api, schedule(api, talk))

    assert (message["status"], message["send_at"]) == ("scheduled", TOMORROW.strftime(IN_MS))
    assert message["cancel_on_reply"] is True
    assert shown(api, schedule(api, talk, cancel_on_reply=False))["cancel_on_reply"] is False
    conversation = api.get(f"conversations/{talk}").json["data"]
    assert conversation["scheduled"] == 2
    assert conversation["last_message_at"] < message["created_at"]
    assert conversation["waiting_since"] is not None
    assert event_kinds(api.workspace_id) == kinds


def test_it_is_written_to_a_contact_too(api: Api, contact_id: str, channel_id: str) -> None:
    body = {"contact_id": contact_id, "text": "Hello", "send_at": TOMORROW.isoformat()}

    job = api.done(api.post("messages", body))

    assert shown(api, job["resource"]["id"])["status"] == "scheduled"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"send_at": "2026-11-21T10:00:00Z"}, "/send_at"),
        ({"send_at": in_days(91)}, "/send_at"),
        ({"send_at": None}, "/send_at"),
        ({"send_at": "tomorrow"}, "/send_at"),
        ({"send_at": in_days(2), "expires_at": in_days(1)}, "/send_at"),
        ({"cancel_on_reply": True}, "/cancel_on_reply"),
        ({"send_at": in_days(1), "cancel_on_reply": 1}, "/cancel_on_reply"),
        ({"send_at": in_days(1), "text": "x" * 4097}, "/text"),
    ],
)
def test_what_cannot_be_sent_then_is_refused_at_once(
    api: Api, talk: str, contact_id: str, body: dict[str, Any], pointer: str
) -> None:
    before = row_counts()
    for path, to in ((f"conversations/{talk}/messages", {}), ("messages", {"contact_id": contact_id})):
        refused = api.post(path, {"text": "Hello", **to, **body})

        assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, pointer)
    assert row_counts() == before


def test_its_text_and_its_time_are_changed_until_it_is_queued(api: Api, talk: str) -> None:
    message_id = schedule(api, talk)
    later = TOMORROW + timedelta(days=1)

    api.done(api.patch(f"messages/{message_id}", {"text": "All well?"}))
    api.done(api.patch(f"messages/{message_id}", {"send_at": later.isoformat()}))
    changed = shown(api, message_id)

    assert (changed["text"], changed["send_at"], changed["status"]) == ("All well?", later.strftime(IN_MS), "scheduled")
    waiting = api.patch(f"messages/{message_id}", {"text": "Too late"})
    go(message_id)
    assert api.done(waiting)["problem"]["status"] == 409
    for refused in (api.patch(f"messages/{message_id}", {"text": "x"}), api.delete(f"messages/{message_id}")):
        assert (refused.status_code, refused.json["type"].rpartition("/")[2]) == (409, "conflict")
    assert shown(api, message_id)["text"] == "All well?"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"text": " "}, "/text"),
        ({"text": " \n"}, "/text"),
        ({"text": "x" * 4097}, "/text"),
        ({"text": None}, "/text"),
        ({"text": "x" * 50}, "/text"),
        ({"send_at": "2026-11-21T10:00:00Z"}, "/send_at"),
        ({"send_at": in_days(91)}, "/send_at"),
        ({"send_at": in_days(20)}, "/send_at"),
        ({"send_at": None}, "/send_at"),
        ({"cancel_on_reply": False}, "/cancel_on_reply"),
    ],
)
def test_a_change_to_what_cannot_be_sent_is_refused_at_once(
    api: Api, talk: str, body: dict[str, Any], pointer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message_id = schedule(api, talk, expires_at=in_days(10))
    monkeypatch.setattr(type(WIRE), "most_characters", 40)

    refused = api.patch(f"messages/{message_id}", body)

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, pointer)


def test_it_is_deleted(api: Api, talk: str) -> None:
    message_id = schedule(api, talk)
    again = api.delete(f"messages/{message_id}")

    deleted = api.delete(f"messages/{message_id}", key=KEY)
    api.apply()

    assert api.job(again)["status"] == "succeeded"
    assert api.job(deleted)["problem"]["status"] == 404
    assert api.get(f"messages/{message_id}").status_code == 404
    assert api.get(f"conversations/{talk}").json["data"]["scheduled"] == 0


def test_a_message_that_a_queued_write_makes_can_be_changed_and_deleted(api: Api, talk: str) -> None:
    made = api.post(f"conversations/{talk}/messages", {"text": "Hello", "send_at": TOMORROW.isoformat()})
    message_id = made.json["data"]["resource"]["id"]

    changed = api.patch(f"messages/{message_id}", {"text": "Good day"})
    deleted = api.delete(f"messages/{message_id}")
    api.apply()

    assert [api.job(each)["status"] for each in (made, changed, deleted)] == ["succeeded"] * 3
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 0


def test_those_that_are_scheduled_are_listed_the_next_first(api: Api, others: Api, talk: str) -> None:
    days = (3, 1, 2)
    made = dict(zip(days, [schedule(api, talk, send_at=in_days(day)) for day in days], strict=True))
    receive(api.workspace_id, one("SELECT contact_id FROM conversations"), one("SELECT channel_id FROM conversations"))
    expected = [made[day] for day in sorted(days)]

    for path in ("messages", f"conversations/{talk}/messages"):
        first = api.get(f"{path}?scheduled=true&limit=2").json
        then = api.get(f"{path}?scheduled=true&limit=2&cursor={first['meta']['nextCursor']}").json
        assert [each["id"] for each in first["data"] + then["data"]] == expected
        assert api.get(f"{path}?scheduled=false").status_code == 422
    assert others.get("messages?scheduled=true").json["data"] == []


def test_an_export_has_it(api: Api, talk: str, contact_id: str) -> None:
    message_id = schedule(api, talk)

    exported = api.get(f"contacts/{contact_id}/export").json["data"]["messages"]

    assert [each["send_at"] for each in exported if each["id"] == message_id] == [TOMORROW.strftime(IN_MS)]
    assert rows("SELECT status FROM messages WHERE id = %s", (message_id,)) == [("scheduled",)]
