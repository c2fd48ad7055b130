"""Messages in the API: written in a conversation, to a contact, to somebody on a channel, and read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.database import rows
from app.domain.channels import media
from app.lib import ids
from app.models.channels import Channel
from tests.cast import Api, all_of, event_kinds, one
from tests.talks import close, make_channel, receive
from tests.wires import WIRE

LATER, EARLIER = "2126-11-21T10:00:00.000Z", "2026-11-21T10:00:00.000Z"
YES, NO = {"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}
WRONG_LABELS = ("", "   ", "x" * 21, "two\nlines", "a\0b", 7, None)
WRONG_IDS = ("", " yes", "yes ", "x" * 65, "größe", "a\nb", "yes\n", 7, None)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(phone="+4930123456")["id"])


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_channel(api.workspace_id)


@pytest.fixture
def conversation_id(api: Api, contact_id: str, channel_id: str) -> str:
    return str(receive(api.workspace_id, contact_id, channel_id).conversation_id)


@pytest.fixture
def answering_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider does not let a business write first."""
    monkeypatch.setattr(type(WIRE), "may_open", False)


def sent(api: Api, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Writes the message and returns it."""
    job = api.done(api.post(path, body))
    assert job["status"] == "succeeded", job
    return dict(api.get(f"messages/{job['resource']['id']}").json["data"])


def many(count: int) -> list[dict[str, str]]:
    return [{"id": f"button:{number}", "label": f"Button {number}"} for number in range(count)]


def refused(api: Api, path: str, body: dict[str, Any]) -> str:
    """The place of the fault for which the message is refused at once."""
    answer = api.post(path, body)
    assert answer.status_code == 422, answer.text
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 0
    return str(answer.get_json(force=True)["errors"][0]["pointer"])


# In a conversation


def test_a_message_is_queued_and_shown_with_all_its_fields(api: Api, conversation_id: str) -> None:
    accepted = api.post(f"conversations/{conversation_id}/messages", {"text": "It is on its way."})
    message_id = accepted.json["data"]["resource"]["id"]

    assert api.done(accepted)["resource"]["url"].endswith(f"/messages/{message_id}")

    shown = api.get(f"messages/{message_id}").json["data"]
    assert shown == {
        "id": message_id,
        "conversation_id": conversation_id,
        "direction": "out",
        "text": "It is on its way.",
        "attachments": [],
        "buttons": [],
        "button_id": None,
        "status": "queued",
        "failure": None,
        "author": {"type": "api", "id": api.get("/api/v1/auth/me").json["data"]["token"]["id"]},
        "run_id": None,
        "expires_at": None,
        "send_at": None,
        "cancel_on_reply": False,
        "provider_payload": None,
        "data": None,
        "provider_time": None,
        "created_at": shown["created_at"],
    }
    assert one("SELECT due_at IS NOT NULL FROM messages WHERE id = %s", message_id)


@pytest.mark.parametrize(("expires_at", "status", "code"), [(LATER, "queued", None), (EARLIER, "failed", "expired")])
def test_a_message_is_not_sent_once_it_has_expired(
    api: Api, conversation_id: str, expires_at: str, status: str, code: str | None
) -> None:
    body = {"text": "See you soon", "expires_at": expires_at}

    message = sent(api, f"conversations/{conversation_id}/messages", body)

    assert (message["expires_at"], message["status"]) == (expires_at, status)
    assert (message["failure"] or {}).get("code") == code
    if code is not None:
        again = api.post(f"messages/{message['id']}/resend")
        api.apply()
        assert api.job(again)["status"] == "succeeded"
        assert api.get(f"messages/{message['id']}").json["data"]["status"] == "failed"


def test_a_message_opens_the_conversation_again(api: Api, contact_id: str, conversation_id: str) -> None:
    close(api.workspace_id, contact_id)

    sent(api, f"conversations/{conversation_id}/messages", {"text": "One more thing"})

    assert api.get(f"conversations/{conversation_id}").json["data"]["status"] == "open"


def test_a_file_is_sent_with_its_caption(api: Api, conversation_id: str) -> None:
    upload = media.store(api.workspace_id, "map.png", PNG)
    path = f"conversations/{conversation_id}/messages"

    message = sent(api, path, {"text": "Here", "attachments": [{"upload_id": upload.id}]})

    assert message["attachments"] == [
        {
            **{"id": upload.id, "name": "map.png", "content_type": "image/png", "bytes": len(PNG)},
            "address": media.address_of(upload.id),
        }
    ]
    again = api.post(path, {"attachments": [{"upload_id": upload.id}]})
    assert again.get_json(force=True)["errors"][0]["pointer"] == "/attachments/0/upload_id"


def test_two_queued_messages_do_not_share_a_file(api: Api, conversation_id: str) -> None:
    upload = media.store(api.workspace_id, "map.png", PNG)
    body = {"attachments": [{"upload_id": upload.id}]}

    first, second = (api.post(f"conversations/{conversation_id}/messages", body) for _ in range(2))
    api.apply()

    assert (api.job(first)["status"], api.job(second)["problem"]["status"]) == ("succeeded", 422)
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 1


def test_another_workspaces_file_is_refused_at_once(api: Api, others: Api, conversation_id: str) -> None:
    theirs = media.store(others.workspace_id, "map.png", PNG)

    refused = api.post(f"conversations/{conversation_id}/messages", {"attachments": [{"upload_id": theirs.id}]})

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "/attachments/0/upload_id")


def test_a_template_needs_no_text(api: Api, conversation_id: str) -> None:
    message = sent(api, f"conversations/{conversation_id}/messages", {"template": {"name": "hello"}})

    assert (message["text"], message["status"]) == (None, "queued")
    assert one("SELECT template FROM messages WHERE id = %s", message["id"]) == {"name": "hello"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/text"),
        ({"text": "  "}, "/text"),
        ({"text": ""}, "/text"),
        ({"text": "x" * 4097}, "/text"),
        ({"text": "x" * 1025, "attachments": [{"upload_id": "{upload}"}]}, "/text"),
        ({"text": "a\0b"}, "/text"),
        ({"attachments": [{"upload_id": "upl_none"}]}, "/attachments/0/upload_id"),
        ({"attachments": [{"upload_id": "{upload}"}, {"upload_id": "{upload}"}]}, "/attachments"),
        ({"text": "x", "html": "x"}, "/html"),
        ({"buttons": [YES]}, "/text"),
        ({"buttons": [YES], "attachments": [{"upload_id": "{upload}"}]}, "/text"),
        ({"text": "x", "buttons": [YES], "template": {"name": "hello"}}, "/buttons"),
        ({"text": "x", "buttons": many(11)}, "/buttons"),
        ({"text": "x", "buttons": "yes"}, "/buttons"),
        ({"text": "x", "buttons": ["yes"]}, "/buttons/0"),
        ({"text": "x", "buttons": [{"id": "yes"}]}, "/buttons/0/label"),
        ({"text": "x", "buttons": [{"label": "Yes"}]}, "/buttons/0/id"),
        ({"text": "x", "buttons": [YES | {"url": "https://shop.example"}]}, "/buttons/0/url"),
        ({"text": "x", "buttons": [YES, NO | {"id": "yes"}]}, "/buttons/1/id"),
        ({"text": "x", "buttons": [YES, NO | {"label": " yes"}]}, "/buttons/1/label"),
        *(({"text": "x", "buttons": [YES | {"label": each}]}, "/buttons/0/label") for each in WRONG_LABELS),
        *(({"text": "x", "buttons": [YES | {"id": each}]}, "/buttons/0/id") for each in WRONG_IDS),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(
    api: Api, conversation_id: str, body: dict[str, Any], pointer: str
) -> None:
    upload = media.store(api.workspace_id, "map.png", PNG)
    for each in body.get("attachments", ()):
        each["upload_id"] = each["upload_id"].replace("{upload}", upload.id)

    assert refused(api, f"conversations/{conversation_id}/messages", body) == pointer


def test_a_message_offers_buttons(api: Api, contact_id: str, conversation_id: str) -> None:
    offered = [YES, *many(8), {"id": "x" * 64, "label": "Größer als fünf! 👕👕👕"}]

    answer = sent(api, f"conversations/{conversation_id}/messages", {"text": "Sure?", "buttons": offered})
    first = sent(api, "messages", {"contact_id": contact_id, "text": "Sure?", "buttons": [NO]})

    assert (answer["buttons"], answer["button_id"]) == (offered, None)
    assert first["buttons"] == [NO]


def test_an_empty_list_of_buttons_is_none(api: Api, conversation_id: str) -> None:
    body = {"template": {"name": "hello"}, "buttons": []}

    assert sent(api, f"conversations/{conversation_id}/messages", body)["buttons"] == []
    assert all_of("SELECT buttons FROM messages WHERE direction = 'out'") == [None]


@pytest.mark.parametrize(
    ("text", "files", "buttons", "pointer"),
    [("x" * 1025, 0, 3, "/text"), ("x" * 4096, 0, 4, None), ("x" * 1024, 1, 3, None), ("x", 1, 4, "/buttons")],
)
def test_a_channel_may_take_less_beside_buttons(
    api: Api, conversation_id: str, channel_id: str, text: str, files: int, buttons: int, pointer: str | None
) -> None:
    rows("UPDATE channels SET kind = 'whatsapp' WHERE id = %s", (channel_id,))
    rows("UPDATE conversations SET window_ends_at = now() + interval '1 hour'")
    uploads = [{"upload_id": media.store(api.workspace_id, "map.png", PNG).id} for _ in range(files)]
    body = {"text": text, "attachments": uploads, "buttons": many(buttons)}

    if pointer is not None:
        assert refused(api, f"conversations/{conversation_id}/messages", body) == pointer
    else:
        assert sent(api, f"conversations/{conversation_id}/messages", body)["status"] == "queued"


def test_a_contact_that_opted_out_gets_nothing(api: Api, contact_id: str, conversation_id: str) -> None:
    api.done(api.patch(f"contacts/{contact_id}", {"opted_out": True}))

    message = sent(api, f"conversations/{conversation_id}/messages", {"text": "Hello"})

    assert (message["status"], message["failure"]["code"]) == ("failed", "opted_out")
    assert event_kinds(api.workspace_id)[-1] == "message.failed"


# The list of a conversation


def test_the_messages_of_a_conversation_are_in_the_order_of_the_providers_time(
    api: Api, contact_id: str, channel_id: str, conversation_id: str
) -> None:
    early = receive(api.workspace_id, contact_id, channel_id, "Early").id
    late = receive(api.workspace_id, contact_id, channel_id, "Late").id
    ours = sent(api, f"conversations/{conversation_id}/messages", {"text": "Ours"})["id"]
    now = datetime.now(UTC)
    for message_id, minutes in ((early, 2), (late, 1)):
        at = now - timedelta(minutes=minutes)
        rows("UPDATE messages SET provider_time = %s WHERE id = %s", (at, message_id))
    rows("DELETE FROM messages WHERE text = 'Yes'")

    listed, cursor = [], ""
    while cursor is not None:
        page = api.get(f"conversations/{conversation_id}/messages?limit=1{cursor and f'&cursor={cursor}'}").json
        listed += [each["id"] for each in page["data"]]
        cursor = page["meta"]["nextCursor"]

    assert listed == [ours, late, early]


def test_all_messages_are_listed_newest_first(api: Api, others: Api, conversation_id: str) -> None:
    receive(others.workspace_id, others.contact(email="e@example.com")["id"], make_channel(others.workspace_id))
    ours = sent(api, f"conversations/{conversation_id}/messages", {"text": "Ours"})

    listed = api.get("messages").json["data"]

    assert listed[0] == ours
    assert [each["text"] for each in listed] == ["Ours", "Yes"]


# To a contact


def test_a_message_to_a_contact_goes_to_the_latest_conversation(
    api: Api, contact_id: str, conversation_id: str
) -> None:
    latest = receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id

    assert sent(api, "messages", {"contact_id": contact_id, "text": "Hello"})["conversation_id"] == latest


def test_a_channel_can_be_chosen(api: Api, contact_id: str, channel_id: str, conversation_id: str) -> None:
    receive(api.workspace_id, contact_id, make_channel(api.workspace_id))

    message = sent(api, "messages", {"contact_id": contact_id, "channel_id": channel_id, "text": "Hello"})

    assert message["conversation_id"] == conversation_id


def test_a_kind_of_channel_can_be_chosen(api: Api, contact_id: str, channel_id: str, conversation_id: str) -> None:
    newest = make_channel(api.workspace_id)
    rows("UPDATE channels SET kind = 'web_chat' WHERE id = %s", (channel_id,))
    receive(api.workspace_id, contact_id, newest)

    message = sent(api, "messages", {"contact_id": contact_id, "channel_kind": "web_chat", "text": "Hello"})
    refused = api.post("messages", {"contact_id": contact_id, "channel_kind": "whatsapp", "text": "Hello"})
    api.apply()

    assert message["conversation_id"] == conversation_id
    assert api.job(refused)["problem"]["status"] == 409


def test_a_conversation_is_opened_where_the_provider_allows_it(api: Api, contact_id: str, channel_id: str) -> None:
    message = sent(api, "messages", {"contact_id": contact_id, "text": "Hello"})

    assert one("SELECT peer FROM conversations WHERE id = %s", message["conversation_id"]) == "+4930123456"
    assert "conversation.opened" in event_kinds(api.workspace_id)


@pytest.mark.usefixtures("answering_only")
def test_no_conversation_is_opened_where_the_provider_does_not_allow_it(
    api: Api, contact_id: str, channel_id: str
) -> None:
    for body, status in (({"contact_id": contact_id}, 409), ({"channel_id": channel_id, "to": "+4930123456"}, 409)):
        job = api.done(api.post("messages", {**body, "text": "Hello"}))

        assert job["problem"]["status"] == status
    assert one("SELECT count(*) FROM conversations") == 0


# To somebody on a channel


def test_a_message_to_a_phone_makes_its_contact_once(api: Api, channel_id: str) -> None:
    first, second = (
        sent(api, "messages", {"channel_id": channel_id, "to": "+4930999999", "text": "Hello"}) for _ in range(2)
    )

    assert first["conversation_id"] == second["conversation_id"]
    [contact] = api.get("contacts?phone=%2B4930999999").json["data"]
    assert one("SELECT array_agg(address) FROM identities WHERE contact_id = %s", contact["id"]) == ["test:+4930999999"]


def test_a_message_to_a_known_phone_reaches_its_contact(api: Api, contact_id: str, channel_id: str) -> None:
    message = sent(api, "messages", {"channel_id": channel_id, "to": "+4930123456", "text": "Hello"})

    conversation = api.get(f"conversations/{message['conversation_id']}").json["data"]
    assert conversation["contact_id"] == contact_id


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"text": "x"}, "/contact_id"),
        ({"text": "x", "channel_id": "{channel}"}, "/contact_id"),
        ({"text": "x", "channel_id": "{channel}", "to": "x", "channel_kind": "telegram"}, "/channel_kind"),
        ({"text": "x", "contact_id": "{contact}", "channel_kind": "pigeon"}, "/channel_kind"),
        ({"text": "x", "channel_id": "{channel}", "to": "x", "contact_id": "{contact}"}, "/to"),
        ({"text": "x", "contact_id": ids.new("con")}, "/contact_id"),
        ({"text": "x", "channel_id": ids.new("chn"), "to": "+4930123456"}, "/channel_id"),
        ({"text": "x" * 4097, "contact_id": "{contact}"}, "/text"),
    ],
)
def test_it_must_be_clear_to_whom(
    api: Api, contact_id: str, channel_id: str, body: dict[str, Any], pointer: str
) -> None:
    named = {"{channel}": channel_id, "{contact}": contact_id}

    assert refused(api, "messages", {name: named.get(value, value) for name, value in body.items()}) == pointer


def test_a_channel_of_others_cannot_be_used(api: Api, others: Api) -> None:
    theirs = make_channel(others.workspace_id)

    assert refused(api, "messages", {"channel_id": theirs, "to": "+4930123456", "text": "x"}) == "/channel_id"


def test_a_deleted_channel_cannot_be_used(api: Api, channel_id: str) -> None:
    Channel.update(deleted_at=datetime.now(UTC)).execute()

    assert refused(api, "messages", {"channel_id": channel_id, "to": "+4930123456", "text": "x"}) == "/channel_id"


# Sending again


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_a_message_can_be_sent_again(api: Api, conversation_id: str, status: str) -> None:
    message = sent(api, f"conversations/{conversation_id}/messages", {"text": "Hello"})
    rows("UPDATE messages SET status = %s, due_at = NULL WHERE id = %s", (status, message["id"]))

    assert api.done(api.post(f"messages/{message['id']}/resend"))["status"] == "succeeded"

    assert api.get(f"messages/{message['id']}").json["data"]["status"] == "queued"


def test_a_message_that_may_still_arrive_is_not_sent_again(api: Api, conversation_id: str) -> None:
    accepted = api.post(f"conversations/{conversation_id}/messages", {"text": "Hello"})
    again = api.post(f"messages/{accepted.json['data']['resource']['id']}/resend")
    api.apply()

    assert api.job(again)["problem"]["status"] == 409
