"""Conversations in the API: listed, shown, closed, assigned and read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from app import realtime
from app.database import rows
from app.lib import ids
from app.lib.json import timestamp
from app.realtime import Sign
from tests.automations import carry_on
from tests.cast import Api, event_kinds, one
from tests.talks import close, make_channel, make_member, receive

# Not all of these are labels, or they are too many.
BAD_LABELS = [{"labels": each} for each in (None, "refund", ["  "], ["x" * 101], [7], list("abcdefghijklmnopqrstu"))]


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com")["id"])


@pytest.fixture
def conversation_id(api: Api, contact_id: str) -> str:
    return str(receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id)


def show(api: Api, conversation_id: str) -> dict[str, Any]:
    return dict(api.get(f"conversations/{conversation_id}").json["data"])


def change(api: Api, conversation_id: str, **fields: Any) -> dict[str, Any]:
    """Changes the conversation and returns it."""
    job = api.done(api.patch(f"conversations/{conversation_id}", fields))
    assert job["status"] == "succeeded", job
    assert job["resource"]["url"].endswith(f"/conversations/{conversation_id}")
    return show(api, conversation_id)


def test_a_conversation_is_shown_with_all_its_fields(api: Api, contact_id: str, conversation_id: str) -> None:
    shown = show(api, conversation_id)

    assert shown == {
        "id": conversation_id,
        "contact_id": contact_id,
        "channel_id": shown["channel_id"],
        "status": "open",
        "assignee_id": None,
        "labels": [],
        "snoozed_until": None,
        "unread": shown["unread"],
        "waiting_since": shown["last_message_at"],
        "first_answered_at": None,
        "scheduled": 0,
        "last_message_at": shown["last_message_at"],
        "window_ends_at": None,
        "referral": None,
        "created_at": shown["created_at"],
    }


def listed(api: Api, query: str) -> list[str]:
    return [each["id"] for each in api.get(f"conversations{query}").json["data"]]


def test_conversations_are_listed_by_status_assignee_channel_and_contact(api: Api, conversation_id: str) -> None:
    other = api.contact(email="bea@example.com")["id"]
    channel_id = make_channel(api.workspace_id)
    second = receive(api.workspace_id, other, channel_id).conversation_id
    close(api.workspace_id, other)
    member_id = make_member(api.workspace_id)
    change(api, conversation_id, assignee_id=member_id)

    assert listed(api, "") == [second, conversation_id]
    assert listed(api, "?status=closed") == [second]
    assert listed(api, f"?assignee_id={member_id}") == [conversation_id]
    assert listed(api, "?assignee_id=none") == [second]
    assert listed(api, f"?channel_id={channel_id}") == [second]
    assert listed(api, f"?contact_id={other}&status=open") == []


def test_conversations_are_listed_by_label(api: Api, others: Api, contact_id: str, conversation_id: str) -> None:
    channel_ids = [make_channel(api.workspace_id) for _ in range(3)]
    more = [receive(api.workspace_id, contact_id, each).conversation_id for each in channel_ids]
    for each in more:
        change(api, each, labels=["refund", "vip"])
    change(api, more[1], status="closed", labels=["refund"])

    assert listed(api, "?label=refund") == more[::-1]
    assert listed(api, "?label=refund&status=open") == [more[2], more[0]]
    assert listed(api, f"?label=vip&channel_id={channel_ids[1]}") == []
    assert listed(api, "?label=none") == []
    assert others.get("conversations?label=refund").json["data"] == []


@pytest.mark.parametrize("label", ["Zoë", "zoë", "ZOE\u0308", "\uff3aO\u00cb", "zo\u200bë"])
@pytest.mark.parametrize("others", ["", "&status=open", "&order=waiting", "&snoozed=false"])
def test_conversations_are_found_by_a_label_that_is_equal_to_a_reader(
    api: Api, conversation_id: str, label: str, others: str
) -> None:
    change(api, conversation_id, labels=["Zoë"])

    assert listed(api, f"?label={quote(label)}{others}") == [conversation_id]
    assert listed(api, f"?label=Zoe{others}") == []


def test_a_page_by_label_is_full_although_conversations_have_it_in_two_spellings(api: Api, contact_id: str) -> None:
    found = [receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id for _ in range(3)]
    rows("UPDATE conversations SET labels = '{Refund,refund}'")

    first = api.get("conversations?label=refund&limit=2").json

    assert len(first["data"]) == 2
    assert listed(api, f"?label=refund&limit=2&cursor={first['meta']['nextCursor']}") == sorted(found)[:1]


def test_a_list_by_label_goes_on_where_its_page_ended(api: Api, contact_id: str) -> None:
    found = [receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id for _ in range(3)]
    for each in found:
        change(api, each, labels=["refund"])

    first = api.get("conversations?label=refund&limit=2").json
    cursor = first["meta"]["nextCursor"]

    assert [each["id"] for each in first["data"]] == found[:0:-1]
    assert listed(api, f"?label=refund&limit=2&cursor={cursor}") == found[:1]


def test_a_page_by_label_is_full_also_if_few_are_snoozed(api: Api, contact_id: str) -> None:
    found = [receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id for _ in range(4)]
    for each in found:
        change(api, each, labels=["refund"])
    rows("UPDATE conversations SET snoozed_until = now() + interval '1 day' WHERE id = %s", (found[0],))

    assert listed(api, "?label=refund&snoozed=true&limit=1") == [found[0]]


def test_a_contact_waits_from_the_first_message_that_nobody_has_answered(
    api: Api, contact_id: str, conversation_id: str
) -> None:
    def waiting() -> tuple[str | None, str | None]:
        shown = show(api, conversation_id)
        return shown["waiting_since"], shown["first_answered_at"]

    def say(path: str, **body: Any) -> dict[str, Any]:
        job = api.done(api.post(path, body))
        assert job["status"] == "succeeded", job
        return dict(api.get(f"messages/{job['resource']['id']}").json["data"])

    since, _ = waiting()
    channel_id = show(api, conversation_id)["channel_id"]
    receive(api.workspace_id, contact_id, channel_id)
    automation_id = api.published({"id": "hello", "kind": "send_message", "text": "One moment, please."})
    api.done(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    carry_on(api.workspace_id)
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 1
    assert waiting() == (since, None)

    first = say(f"conversations/{conversation_id}/messages", text="Yes?")
    assert waiting() == (None, first["created_at"])
    again = receive(api.workspace_id, contact_id, channel_id)
    assert waiting() == (timestamp(again.created_at), first["created_at"])
    api.done(api.patch(f"contacts/{contact_id}", {"opted_out": True}))
    assert say("messages", contact_id=contact_id, text="Sorry?")["status"] == "failed"
    assert waiting() == (timestamp(again.created_at), first["created_at"])
    change(api, conversation_id, status="closed")
    assert waiting() == (None, first["created_at"])


def test_who_has_waited_longest_comes_first(api: Api, others: Api, contact_id: str) -> None:
    channel_ids = [make_channel(api.workspace_id) for _ in range(4)]
    found = [receive(api.workspace_id, contact_id, each).conversation_id for each in channel_ids]
    receive(api.workspace_id, contact_id, channel_ids[0])
    change(api, found[1], status="closed")
    change(api, found[2], labels=["refund"])
    rows("UPDATE conversations SET waiting_since = waiting_since - interval '1 hour' WHERE id = %s", (found[3],))

    assert listed(api, "?order=waiting") == [found[3], found[0], found[2]]
    assert listed(api, "?order=waiting&label=refund&status=open") == [found[2]]
    assert listed(api, f"?order=waiting&channel_id={channel_ids[3]}") == [found[3]]
    assert listed(api, "?order=newest") == found[::-1]
    first = api.get("conversations?order=waiting&limit=2").json
    assert [each["id"] for each in first["data"]] == [found[3], found[0]]
    assert listed(api, f"?order=waiting&limit=2&cursor={first['meta']['nextCursor']}") == [found[2]]
    assert others.get("conversations?order=waiting").json["data"] == []
    assert api.get("conversations?order=oldest").status_code == 422


def test_labels_are_replaced(api: Api, conversation_id: str) -> None:
    assert change(api, conversation_id, labels=[" vip ", "refund", "vip"])["labels"] == ["refund", "vip"]
    assert change(api, conversation_id, labels=["vip", "refund"])["labels"] == ["refund", "vip"]
    assert change(api, conversation_id, labels=[])["labels"] == []

    assert event_kinds(api.workspace_id).count("conversation.labelled") == 2


def test_a_conversation_is_closed_and_opened(api: Api, conversation_id: str) -> None:
    assert change(api, conversation_id, status="closed")["status"] == "closed"
    assert change(api, conversation_id, status="closed")["status"] == "closed"
    assert change(api, conversation_id, status="open")["status"] == "open"

    kinds = [kind for kind in event_kinds(api.workspace_id) if kind.startswith("conversation.")]
    assert kinds == ["conversation.opened", "conversation.closed", "conversation.opened"]


def test_a_conversation_is_assigned_and_taken_back(api: Api, conversation_id: str) -> None:
    member_id = make_member(api.workspace_id)

    assert change(api, conversation_id, assignee_id=member_id)["assignee_id"] == member_id
    assert change(api, conversation_id, assignee_id=None)["assignee_id"] is None
    assert event_kinds(api.workspace_id).count("conversation.assigned") == 2


def test_a_conversation_is_assigned_to_members_alone(api: Api, others: Api, conversation_id: str) -> None:
    for member_id in (make_member(others.workspace_id), ids.new("mem"), "me"):
        refused = api.patch(f"conversations/{conversation_id}", {"assignee_id": member_id})

        assert refused.status_code == 422
        assert refused.get_json(force=True)["errors"][0]["pointer"] == "/assignee_id"


def test_reading_a_conversation_tells_the_provider_once(api: Api, conversation_id: str) -> None:
    rows("UPDATE messages SET provider_id = 'wamid.1'")
    rows("UPDATE conversations SET unread = 2")

    assert change(api, conversation_id, read=True)["unread"] == 0
    assert change(api, conversation_id, read=True)["unread"] == 0

    assert one("SELECT array_agg(provider_id) FROM read_receipts WHERE due_at IS NOT NULL") == ["wamid.1"]


def test_reading_what_no_provider_knows_tells_nobody(api: Api, conversation_id: str) -> None:
    rows("UPDATE conversations SET unread = 2")

    assert change(api, conversation_id, read=True)["unread"] == 0
    assert one("SELECT count(*) FROM read_receipts") == 0


@pytest.mark.parametrize("body", [{"read": False}, {"status": "held"}, {"unread": 0}, {"assignee_id": 7}, *BAD_LABELS])
def test_what_cannot_be_changed_is_refused(api: Api, conversation_id: str, body: dict[str, Any]) -> None:
    assert api.patch(f"conversations/{conversation_id}", body).status_code == 422


def test_the_visitor_and_the_members_see_that_an_answer_is_typed(
    api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Sign] = []
    monkeypatch.setattr(realtime, "show", shown.append)
    rows("UPDATE conversations SET peer = 'vtr_1'")

    answer = api.post(f"conversations/{conversation_id}/typing")

    assert (answer.status_code, answer.data, answer.headers.get("Content-Type")) == (204, b"", None)
    assert "RateLimit" in answer.headers
    [sign] = shown
    author = {"type": "api", "id": api.get("/api/v1/auth/me").json["data"]["token"]["id"]}
    assert sign.data == {"conversation_id": conversation_id, "author": author}
    assert (sign.kind, sign.workspace_id) == ("typing", api.workspace_id)
    assert (sign.channel_id, sign.peer) == (one("SELECT channel_id FROM conversations"), "vtr_1")
    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'conversations%%'") == 0


def test_the_members_see_that_somebody_looks(api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Sign] = []
    monkeypatch.setattr(realtime, "show", shown.append)

    answer = api.post(f"conversations/{conversation_id}/presence")

    assert (answer.status_code, answer.data) == (204, b"")
    [sign] = shown
    author = {"type": "api", "id": api.get("/api/v1/auth/me").json["data"]["token"]["id"]}
    assert (sign.kind, sign.workspace_id, sign.data["author"]) == ("presence", api.workspace_id, author)
    assert api.get(f"conversations/{conversation_id}/presence").json == {
        "data": [{"author": author, "until": sign.data["until"]}]
    }
    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'conversations%%'") == 0


def test_a_conversation_whose_contact_is_deleted_does_not_change(
    api: Api, contact_id: str, conversation_id: str
) -> None:
    accepted = api.delete(f"contacts/{contact_id}")
    changed = api.patch(f"conversations/{conversation_id}", {"status": "open"})
    api.done(accepted)

    assert api.job(changed)["problem"]["status"] == 404
