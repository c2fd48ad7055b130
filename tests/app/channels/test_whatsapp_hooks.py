"""WhatsApp's webhooks, read as pywa reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import pywa
from pywa.types import Message, MessageStatus, OutgoingMessage
from pywa.types.message import DeletedMessage, EditedMessage
from pywa.types.system import PhoneNumberChange
from pywa.utils import webhook_updates_validator

from app.channels.inbound import BadPayload, Blocked, Echoed, Edited, Media, Moved, Receipt, Received
from app.channels.whatsapp import WhatsApp
from tests.providers.whatsapp import (
    CREDENTIALS,
    PHONE,
    USER_ID,
    account_at,
    echo,
    message,
    person,
    signed,
    status,
    webhook,
)

ACCOUNT = account_at("https://graph.example/v23.0")
KIND = WhatsApp()
AT = 1_795_000_000
WHEN = datetime.fromtimestamp(AT, UTC)


def arrivals(body: bytes) -> list[Any]:
    return list(KIND.arrivals(ACCOUNT, body))


def test_a_webhook_is_genuine_if_pywa_takes_it_to_be() -> None:
    account = ACCOUNT
    body = webhook(contacts=[person()], messages=[message("wamid.1", text="Hi")])
    headers = {name.lower(): value for name, value in signed(body).items()}
    assert webhook_updates_validator(CREDENTIALS["app_secret"], body, headers["x-hub-signature-256"])
    assert KIND.is_genuine(account, headers, body)
    assert not KIND.is_genuine(account, headers, body + b" ")
    assert not KIND.is_genuine(account, {}, body)
    assert not KIND.is_genuine(account, {"x-hub-signature-256": "sha256=ü"}, body)


@pytest.mark.parametrize(
    ("phone", "sender", "attested"), [(PHONE, USER_ID, f"+{PHONE}"), (None, USER_ID, None)], ids=["shown", "hidden"]
)
def test_a_text_is_read_as_pywa_reads_it(phone: str | None, sender: str, attested: str | None) -> None:
    body = webhook(contacts=[person(phone)], messages=[message("wamid.1", AT, phone, text="Hi")])
    [received] = arrivals(body)
    read = Message.from_update(pywa.WhatsApp(server=None), json.loads(body))
    assert received == Received(
        key="wamid.1",
        sender=sender,
        peer=phone or USER_ID,
        provider_id=read.id,
        at=read.timestamp,
        text=read.text,
        name=read.from_user.name,
        phone=attested,
    )


def test_without_another_identifier_the_phone_is_the_sender() -> None:
    body = webhook(contacts=[person(user_id=None)], messages=[message("wamid.1", text="Hi")])
    [received] = arrivals(body)
    assert (received.sender, received.phone, received.name) == (PHONE, f"+{PHONE}", "Ada")


def test_each_message_has_its_own_sender() -> None:
    people = [person(), person("33612345678", "FR.2", "Bob")]
    messages = [message("wamid.1", text="One"), message("wamid.2", phone="33612345678", text="Two")]
    received = arrivals(webhook(contacts=people, messages=messages))
    assert [(each.sender, each.name, each.text) for each in received] == [
        (USER_ID, "Ada", "One"),
        ("FR.2", "Bob", "Two"),
    ]


def test_media_come_by_their_identifier() -> None:
    part = {"id": "1003383421387256", "mime_type": "application/pdf", "filename": "bill.pdf", "caption": "My bill"}
    [received] = arrivals(webhook(contacts=[person()], messages=[message("wamid.1", document=part)]))
    assert received.text == "My bill"
    assert list(received.media) == [Media("1003383421387256", "application/pdf", "bill.pdf")]


@pytest.mark.parametrize(
    ("content", "text", "button_id"),
    [
        ({"button": {"text": "Yes", "payload": "yes"}}, "Yes", "yes"),
        ({"button": {"text": "Yes", "payload": "x" * 256}}, "Yes", None),
        ({"interactive": {"type": "button_reply", "button_reply": {"id": "1", "title": "Now"}}}, "Now", "1"),
        ({"interactive": {"type": "list_reply", "list_reply": {"id": "1", "title": "Cut"}}}, "Cut", "1"),
        ({"interactive": {"type": "nfm_reply", "nfm_reply": {"body": "Sent", "name": "flow"}}}, "Sent", None),
        ({"location": {"latitude": 52.5, "longitude": 13.4, "name": "Café"}}, "Café\n52.5, 13.4", None),
        ({"contacts": [{"name": {"formatted_name": "Bob"}, "phones": [{"phone": "+33 6"}]}]}, "Bob +33 6", None),
    ],
)
def test_other_kinds_of_messages_become_text(content: dict[str, Any], text: str, button_id: str | None) -> None:
    [received] = arrivals(webhook(contacts=[person()], messages=[message("wamid.1", **content)]))
    assert (received.text, received.button_id) == (text, button_id)


ORDER = {
    "catalog_id": "1",
    "text": "Please before Friday",
    "product_items": [
        {"product_retailer_id": "HAT-BLUE-M", "quantity": 2, "item_price": 19.9, "currency": "EUR"},
        {"product_retailer_id": "SCARF-7", "quantity": 1, "item_price": 12, "currency": "EUR"},
    ],
}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"order": ORDER}, "Please before Friday\n2 x HAT-BLUE-M, 19.9 EUR\n1 x SCARF-7, 12 EUR"),
        ({"unsupported": {"type": "poll_creation"}}, "A message that Bellhop cannot show (poll_creation)"),
        ({"unsupported": None}, "A message that Bellhop cannot show (unsupported)"),
        ({"poll": {"title": "Which?", "options": [{"text": "A"}, {"text": "B"}]}}, "Which?\nA\nB"),
        ({"hologram": [7, None]}, "A message that Bellhop cannot show (hologram)"),
        (
            {"interactive": {"type": "call_permission_reply", "call_permission_reply": {"response": "accept"}}},
            "A message that Bellhop cannot show (call_permission_reply)",
        ),
    ],
)
def test_a_message_of_an_unknown_kind_is_one_and_keeps_its_document(content: dict[str, Any], text: str) -> None:
    item = message("wamid.1", **content)
    [received] = arrivals(webhook(contacts=[person()], messages=[item]))
    assert (received.text, received.button_id, received.payload) == (text, None, item)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"type": "unsupported", "errors": [{"code": 131060, "title": "View-once media"}]}, "unsupported"),
        ({"type": "ephemeral"}, "ephemeral"),
        ({"type": "image", "image": {"mime_type": "image/jpeg"}, "errors": [{"code": 131052}]}, "image"),
        ({"type": "contacts", "contacts": [{"phones": [{"phone": "1"}]}]}, "contacts"),
        ({"type": "text", "text": {"body": 7}}, "text"),
        ({}, "unknown"),
    ],
)
def test_a_message_without_the_part_that_its_kind_has_is_one(item: dict[str, Any], kind: str) -> None:
    item = {"from": PHONE, "id": "wamid.1", "timestamp": str(AT), **item}
    [received] = arrivals(webhook(contacts=[person()], messages=[item]))
    said = (received.text, received.media, received.button_id, received.payload)
    assert said == (f"A message that Bellhop cannot show ({kind})", (), None, item)


def test_the_answers_in_a_flow_are_read() -> None:
    answers = {"rating": "0_Excellent", "extras": ["a", "b"], "flow_token": "unused"}
    reply = {"body": "Sent", "name": "flow", "response_json": json.dumps(answers)}
    item = message("wamid.1", interactive={"type": "nfm_reply", "nfm_reply": reply})
    [received] = arrivals(webhook(contacts=[person()], messages=[item]))
    assert (received.text, received.data) == ('Sent\nrating: 0_Excellent\nextras: ["a","b"]', answers)
    assert received.payload == item


@pytest.mark.parametrize("said", ["{", "7", "\ud800", None])
def test_answers_that_are_no_object_stay_in_the_document(said: str | None) -> None:
    reply = {"body": "Sent", "response_json": said and said.replace("\ud800", '{"a": "\\ud800"}')}
    item = message("wamid.1", interactive={"type": "nfm_reply", "nfm_reply": reply})
    [received] = arrivals(webhook(contacts=[person()], messages=[item]))
    assert (received.text, received.data, received.payload) == ("Sent", None, item)


def test_the_advertisement_that_somebody_comes_from_is_read() -> None:
    referral = {"source_id": "120", "source_type": "ad", "headline": "Boots", "ctwa_clid": "ARAk"}
    item = message("wamid.1", text="Hello!") | {"referral": referral}
    [received] = arrivals(webhook(contacts=[person()], messages=[item]))
    assert (received.text, received.referral, received.payload) == ("Hello!", referral, item)


def test_a_document_that_is_too_large_or_shown_in_full_is_not_kept() -> None:
    large = message("wamid.1", hologram={"text": "x" * 40_000})
    product = message("wamid.3", text="Is it new?") | {"context": {"referred_product": {"catalog_id": "1"}}}
    messages = [large, message("wamid.2", text="Hi"), product]
    payloads = [each.payload for each in arrivals(webhook(contacts=[person()], messages=messages))]
    assert payloads == [None, None, product]


def test_a_message_that_is_revoked_loses_its_text() -> None:
    revoked = message("wamid.2", AT, revoke={"original_message_id": "wamid.1"})
    body = webhook(contacts=[person()], messages=[revoked])
    read = DeletedMessage.from_update(pywa.WhatsApp(server=None), json.loads(body))
    assert arrivals(body) == [Edited(read.id, USER_ID, read.original_message_id, read.timestamp, None)]


def moved(**system: Any) -> bytes:
    """Such webhooks name no contacts."""
    return webhook(messages=[message("wamid.2", AT, system={"body": "Ada changed", **system})])


def test_a_changed_number_is_read_as_pywa_reads_it() -> None:
    body = moved(type="user_changed_number", wa_id="33612345678")
    read = PhoneNumberChange.from_update(pywa.WhatsApp(server=None), json.loads(body))
    assert read.new_wa_id == "33612345678"
    assert arrivals(body) == [Moved(read.id, "33612345678", "33612345678", read.timestamp, [PHONE], "+33612345678")]


def test_the_other_identifier_changes_with_the_number() -> None:
    user_ids = {"previous_user_id": USER_ID, "user_id": "FR.2"}
    [found] = arrivals(moved(type="user_changed_number", wa_id="33612345678", **user_ids))
    assert (found.sender, found.peer, found.formers) == ("FR.2", "33612345678", [USER_ID, PHONE])


def test_the_identifier_of_somebody_who_hides_the_number_can_change() -> None:
    item = message("wamid.2", AT, None, system={"type": "user_changed_user_id", "user_id": "FR.2"})
    assert arrivals(webhook(messages=[item])) == [Moved("wamid.2", "FR.2", "FR.2", WHEN, [USER_ID], None)]


@pytest.mark.parametrize("system", [{"type": "customer_identity_changed"}, {"type": "user_changed_number"}])
def test_other_messages_of_the_system_are_left_out(system: dict[str, Any]) -> None:
    assert arrivals(moved(**system)) == []


def test_reactions_groups_and_other_numbers_are_left_out() -> None:
    reaction = message("wamid.1", reaction={"message_id": "wamid.0", "emoji": "👍"})
    in_group = message("wamid.2", text="Hi all") | {"group_id": "g.1"}
    assert not arrivals(webhook(contacts=[person()], messages=[reaction, in_group]))
    assert not arrivals(webhook(number="999", contacts=[person()], messages=[message("wamid.3", text="Hi")]))
    assert not arrivals(webhook("account_update", event="VERIFIED_ACCOUNT"))


def test_an_edit_is_read_as_pywa_reads_it() -> None:
    edit = {"original_message_id": "wamid.1", "message": {"type": "text", "text": {"body": "Hello"}}}
    body = webhook(contacts=[person()], messages=[message("wamid.2", AT, edit=edit)])
    assert arrivals(body) == [Edited("wamid.2", USER_ID, "wamid.1", WHEN, "Hello")]
    read = EditedMessage.from_update(pywa.WhatsApp(server=None), json.loads(body))
    assert (read.id, read.original_message_id, read.message.text) == ("wamid.2", "wamid.1", "Hello")


def test_an_echo_of_the_phone_app_is_read_as_pywa_reads_it() -> None:
    body = webhook("smb_message_echoes", contacts=[person()], message_echoes=[echo("wamid.1", AT, text="On my way")])
    assert arrivals(body) == [
        Echoed("wamid.1", USER_ID, PHONE, "wamid.1", WHEN, "On my way", phone=f"+{PHONE}"),
    ]
    read = OutgoingMessage.from_update(pywa.WhatsApp(server=None), json.loads(body))
    assert (read.id, read.text, read.to_user.wa_id) == ("wamid.1", "On my way", PHONE)


@pytest.mark.parametrize(
    ("theirs_called", "ours"), [("sent", "sent"), ("delivered", "delivered"), ("read", "read"), ("played", "read")]
)
def test_a_status_is_read_as_pywa_reads_it(theirs_called: str, ours: Any) -> None:
    item = status("wamid.1", theirs_called, AT, biz_opaque_callback_data="msg_1")
    body = webhook(contacts=[person()], statuses=[item])
    assert arrivals(body) == [Receipt(f"wamid.1 {theirs_called}", USER_ID, "wamid.1", WHEN, ours, "msg_1")]
    read = MessageStatus.from_update(pywa.WhatsApp(server=None), json.loads(body))
    assert (read.id, read.status, read.tracker) == ("wamid.1", theirs_called, "msg_1")


@pytest.mark.parametrize(
    ("code", "ours", "is_opt_out"), [(131047, "window_closed", False), (131050, "opted_out", True)]
)
def test_a_failed_status_says_why(code: int, ours: str, is_opt_out: bool) -> None:
    errors = [{"code": code, "title": "No", "message": "No", "error_data": {"details": "Because."}}]
    [receipt] = arrivals(webhook(statuses=[status("wamid.1", "failed", errors=errors)]))
    assert (receipt.status, receipt.code, receipt.detail) == ("failed", ours, f"Because. ({code})")
    assert receipt.is_opt_out is is_opt_out
    assert receipt.recipient == PHONE


@pytest.mark.parametrize(("wish", "is_blocked"), [("stop", True), ("resume", False)])
def test_a_contact_stops_marketing_messages_and_resumes_them(wish: str, is_blocked: bool) -> None:
    wishes = [
        {"wa_id": PHONE, "user_id": USER_ID, "timestamp": str(AT), "value": wish, "category": "marketing_messages"}
    ]
    [blocked] = arrivals(webhook("user_preferences", contacts=[person()], user_preferences=wishes))
    assert blocked == Blocked(f"preference {USER_ID} {AT} {wish}", USER_ID, WHEN, is_blocked)


def test_what_can_be_read_is_kept_beside_what_cannot() -> None:
    bad = [message("wamid.2", text="Hi") | {"timestamp": "soon"}, message("x" * 256, text="Hi")]
    with pytest.raises(BadPayload) as refused:
        arrivals(webhook(messages=[message("wamid.1", text="Hi"), *bad, message("wamid.3", text="Hi")]))

    assert [each.key for each in refused.value.readable] == ["wamid.1", "wamid.3"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"entry": 1}',
        b'{"entry": [{"changes": [{"value": null}]}]}',
        webhook(messages=[message("wamid.1", text="Hi") | {"timestamp": "soon"}]),
        webhook(messages=[message("wamid.1", text="Hi") | {"timestamp": "9" * 30}]),
        webhook(messages=[message("", text="Hi")]),
        webhook(messages=[{"id": "wamid.1", "timestamp": "1", "type": "text", "text": {"body": "From nobody"}}]),
        webhook(messages="Hi"),
    ],
)
def test_what_is_not_documented_is_refused(body: bytes) -> None:
    with pytest.raises(BadPayload):
        arrivals(body)
