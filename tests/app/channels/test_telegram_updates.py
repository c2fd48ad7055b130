"""Telegram's webhooks: which are genuine, and what their updates bring."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.channels.base import Account, ChannelKind
from app.channels.inbound import BadPayload, Blocked, Edited, Media, Received
from app.channels.kinds import CHANNEL_KINDS
from tests.providers.telegram import TOKEN, Sent
from tests.providers.telegram_people import Person

KIND: ChannelKind = CHANNEL_KINDS["telegram"]
KEYBOARD = {
    "inline_keyboard": [[{"text": "Yes, please", "callback_data": "yes"}], [{"text": "No", "url": "https://x.example"}]]
}
QUESTION = Sent(7_000_001, 17, "Sure?", 1_790_000_000, keyboard=KEYBOARD)


@pytest.fixture
def account() -> Account:
    hook = "https://bellhop.test/hooks/telegram/chn_1"
    return Account("chn_1", {}, KIND.fresh_credentials({"bot_token": TOKEN}), "https://api.telegram.org", hook)


@pytest.fixture
def ada() -> Person:
    return Person()


def read(account: Account, update: dict[str, Any]) -> Sequence[Any]:
    return KIND.arrivals(account, json.dumps(update).encode())


def test_a_webhook_is_genuine_only_with_the_secret(account: Account) -> None:
    secret = account.credentials["hook_secret"]
    name = "x-telegram-bot-api-secret-token"
    assert KIND.is_genuine(account, {name: secret}, b"{}")
    for headers in ({}, {name: ""}, {name: secret[:-1]}, {name: secret + "é"}, {"x-other": secret}):
        assert not KIND.is_genuine(account, headers, b"{}")


def test_nothing_is_genuine_without_a_secret(account: Account) -> None:
    bare = replace(account, credentials={"bot_token": TOKEN})
    assert not KIND.is_genuine(bare, {"x-telegram-bot-api-secret-token": ""}, b"{}")


def test_every_connection_has_a_secret_of_its_own() -> None:
    secrets = {KIND.fresh_credentials({"bot_token": TOKEN})["hook_secret"] for _ in range(10)}
    assert len(secrets) == 10


def test_a_message_of_text(account: Account, ada: Person) -> None:
    update = ada.writes("Größe L?", date=1_790_000_000)
    assert read(account, update) == [
        Received(
            key=str(update["update_id"]),
            sender="7000001",
            peer="7000001",
            provider_id=f"7000001:{update['message']['message_id']}",
            at=datetime.fromtimestamp(1_790_000_000, UTC),
            text="Größe L?",
            media=[],
            name="Ada Lovelace",
            locale="en",
        )
    ]


@pytest.mark.parametrize(
    ("members", "media"),
    [
        (
            {
                "photo": [
                    {"file_id": "big", "width": 1280, "height": 960, "file_size": 90_000},
                    {"file_id": "small", "width": 90, "height": 67},
                ]
            },
            Media("big", "image/jpeg", None, 90_000),
        ),
        (
            {"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 7}},
            Media("d", "application/pdf", "a.pdf", 7),
        ),
        (
            {
                "animation": {"file_id": "a", "mime_type": "video/mp4"},
                "document": {"file_id": "a", "mime_type": "video/mp4"},
            },
            Media("a", "video/mp4"),
        ),
        ({"voice": {"file_id": "v", "duration": 3}}, Media("v", "audio/ogg")),
        ({"video_note": {"file_id": "n", "length": 240, "duration": 3}}, Media("n", "video/mp4")),
    ],
)
def test_a_message_with_a_file(account: Account, ada: Person, members: dict[str, Any], media: Media) -> None:
    (arrival,) = read(account, ada.sends(**members, caption="See?"))
    assert (arrival.text, list(arrival.media)) == ("See?", [media])


def test_a_photo_says_which_album_it_is_of(account: Account, ada: Person) -> None:
    sizes = [{"file_id": "F0", "width": 90, "height": 90}]
    [first] = read(account, ada.sends(photo=sizes, media_group_id="13700"))
    [alone] = read(account, ada.sends(photo=sizes))
    assert (first.album, first.payload, alone.album) == ("13700", None, None)


@pytest.mark.parametrize("member", ["text", "caption"])
def test_addresses_behind_words_come_after_them(account: Account, ada: Person, member: str) -> None:
    entities = "entities" if member == "text" else "caption_entities"
    links = [
        {"offset": 10, "length": 8, "type": "text_link", "url": "https://x.example/17"},
        {"offset": 0, "length": 2, "type": "text_link", "url": "https://x.example/👋"},
        {"offset": 3, "length": 1, "type": "bold"},
    ]
    update = ada.sends(**{member: "👋 I mean this one, in blue", entities: links})
    assert [arrival.text for arrival in read(account, update)] == [
        "👋 (https://x.example/👋) I mean this one (https://x.example/17), in blue"
    ]


def test_an_address_that_is_written_out_is_not_repeated(account: Account, ada: Person) -> None:
    links = [{"offset": 0, "length": 14, "type": "text_link", "url": "https://x.example/"}]
    assert [each.text for each in read(account, ada.writes("https://x.example/", entities=links))] == [
        "https://x.example/"
    ]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "52.5, 13.4"),
        (
            {
                "venue": {"title": "Shop", "address": "Main St 1", "location": {"latitude": 1, "longitude": 2}},
                "location": {"latitude": 1, "longitude": 2},
            },
            "Shop, Main St 1, 1, 2",
        ),
        ({"contact": {"first_name": "Bo", "phone_number": "4915112345678"}}, "Bo, 4915112345678"),
        ({"sticker": {"file_id": "s", "emoji": "👍"}}, "👍"),
        ({"poll": {"question": "Which one?", "options": [{"text": "Red"}, {"text": "Blue"}]}}, "Which one?\nRed\nBlue"),
        ({"story": {"chat": {"id": 5, "title": "N"}, "id": 12}}, "A message that Bellhop cannot show (story)"),
        ({"checklist": {"title": "I need", "tasks": [{"id": 1, "text": "a hat"}]}}, "I need\na hat"),
        ({"paid_media": {"star_count": 5, "paid_media": [{"type": "preview"}]}}, None),
        ({"game": {"title": "Chess", "description": "Play!", "photo": []}}, "Chess\nPlay!"),
        ({"users_shared": {"request_id": 1}}, "A message that Bellhop cannot show (users_shared)"),
        ({"text": "\0"}, "A message that Bellhop cannot show (empty)"),
    ],
)
def test_what_has_no_text_is_put_into_words(
    account: Account, ada: Person, members: dict[str, Any], words: str | None
) -> None:
    words = words or "A message that Bellhop cannot show (paid_media)"
    assert [arrival.text for arrival in read(account, ada.sends(**members))] == [words]


def test_a_message_of_an_unknown_kind_keeps_its_document(account: Account, ada: Person) -> None:
    updates = [ada.sends(story={"id": 12, "name": "a\0b"}), ada.writes("Hi"), ada.sends(dice={"emoji": "🎲"})]
    story, *others = [arrival.payload for update in updates for arrival in read(account, update)]
    assert story == updates[0]["message"] | {"story": {"id": 12, "name": "ab"}}
    assert others == [None, None]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"photo": [{}]}, "A message that Bellhop cannot show (photo)"),
        ({"voice": {}, "caption": "Listen"}, "Listen"),
        ({"text": "Hi", "entities": [{"type": "text_link", "url": "https://x.example"}]}, "Hi"),
    ],
)
def test_a_part_that_is_not_as_documented_loses_no_message(
    account: Account, ada: Person, members: dict[str, Any], text: str
) -> None:
    update = ada.sends(**members)
    [received] = read(account, update)
    assert (received.text, received.media, received.payload) == (text, (), update["message"])


@pytest.mark.parametrize(
    ("data", "text", "answers"),
    [
        ('{"size": "M", "gifts": [1]}', "Order\nsize: M\ngifts: [1]", {"size": "M", "gifts": [1]}),
        ("M", "Order\nM", None),
    ],
)
def test_what_a_mini_app_sends_is_read(account: Account, ada: Person, data: str, text: str, answers: Any) -> None:
    update = ada.sends(web_app_data={"data": data, "button_text": "Order"})
    [received] = read(account, update)
    assert (received.text, received.data, received.payload) == (text, answers, update["message"])


def test_an_edited_checklist_is_still_one(account: Account, ada: Person) -> None:
    update = ada.edits(ada.sends(checklist={"title": "I need", "tasks": []}), "")
    update["edited_message"] |= {"checklist": {"title": "I need more", "tasks": []}}
    del update["edited_message"]["text"]
    assert [arrival.text for arrival in read(account, update)] == ["I need more"]


@pytest.mark.parametrize(
    ("contact", "phone"),
    [
        ({"user_id": 7_000_001, "phone_number": "4915112345678"}, "+4915112345678"),
        ({"user_id": 7_000_001, "phone_number": "+49 151 12345678"}, "+4915112345678"),
        ({"user_id": 7_000_002, "phone_number": "4915112345678"}, None),
        ({"phone_number": "4915112345678"}, None),
        ({"user_id": 7_000_001, "phone_number": "112"}, None),
    ],
)
def test_a_phone_is_attested_only_if_it_is_the_senders_own(
    account: Account, ada: Person, contact: dict[str, Any], phone: str | None
) -> None:
    assert [arrival.phone for arrival in read(account, ada.sends(contact={"first_name": "Ada"} | contact))] == [phone]


def test_an_edit_names_the_message_it_changes(account: Account, ada: Person) -> None:
    first = ada.writes("Size M")
    edit = ada.edits(first, "Size L")
    (received,), (edited,) = read(account, first), read(account, edit)
    assert isinstance(edited, Edited)
    assert (edited.provider_id, edited.text) == (received.provider_id, "Size L")
    assert edited.key != received.key


def test_a_live_location_that_moves_is_no_edit(account: Account, ada: Person) -> None:
    first = ada.sends(location={"latitude": 1, "longitude": 2})
    assert read(account, {"update_id": 5, "edited_message": first["message"] | {"edit_date": 1_790_000_000}}) == []


def test_blocking_and_unblocking(account: Account, ada: Person) -> None:
    arrivals = [*read(account, ada.blocks()), *read(account, ada.unblocks())]
    assert [(type(each), each.sender, each.is_blocked) for each in arrivals] == [
        (Blocked, "7000001", True),
        (Blocked, "7000001", False),
    ]


def test_a_press_is_a_message_with_the_label(account: Account, ada: Person) -> None:
    update = ada.presses(QUESTION, "yes")
    [received] = read(account, update)
    assert received.at <= datetime.now(UTC)
    assert received == Received(
        key=str(update["update_id"]),
        sender="7000001",
        peer="7000001",
        provider_id=f"press:{update['callback_query']['id']}",
        at=received.at,
        text="Yes, please",
        name="Ada Lovelace",
        locale="en",
        button_id="yes",
        pressed="7000001:17",
    )


@pytest.mark.parametrize(("button_id", "is_old"), [("yes", True), ("gone", False)])
def test_a_press_without_its_label_says_what_was_pressed(
    account: Account, ada: Person, button_id: str, is_old: bool
) -> None:
    [received] = read(account, ada.presses(QUESTION, button_id, is_old=is_old))
    assert (received.text, received.button_id, received.pressed) == (None, button_id, "7000001:17")


def test_presses_of_what_is_no_button_of_ours_are_left_out(account: Account, ada: Person) -> None:
    for member in ("message", "data"):
        update = ada.presses(QUESTION, "yes")
        del update["callback_query"][member]
        assert read(account, update) == []
    update = ada.presses(QUESTION, "yes")
    update["callback_query"]["message"]["chat"] = {"id": -100_123, "type": "group", "title": "All"}
    assert read(account, update) == []


@pytest.mark.parametrize("kind", ["group", "supergroup", "channel"])
def test_groups_are_ignored(account: Account, ada: Person, kind: str) -> None:
    for update in (ada.writes("Hello all"), ada.edits(ada.writes("Hello"), "Hello all"), ada.blocks()):
        member = next(name for name in update if name != "update_id")
        update[member]["chat"] = {"id": -100_123, "type": kind, "title": "All"}
        assert read(account, update) == []


def test_other_updates_and_bots_are_left_out(account: Account, ada: Person) -> None:
    assert read(account, {"update_id": 1, "poll": {"id": "1"}}) == []
    assert read(account, {"update_id": 1}) == []
    assert read(account, ada.sends(pinned_message={"message_id": 1})) == []
    assert read(account, ada.writes("I am a bot", **{"from": ada.user | {"is_bot": True}})) == []


def test_text_that_postgresql_cannot_store_loses_what_it_cannot(account: Account, ada: Person) -> None:
    (arrival,) = read(account, ada.called("A\0da").writes("Hel\0lo"))
    assert (arrival.text, arrival.name) == ("Hello", "Ada Lovelace")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff",
        b'{"message":{}}',
        b'{"update_id":true}',
        b'{"update_id":1,"message":[]}',
        b'{"update_id":1,"callback_query":{"id":7,"from":{"id":1},"data":"a","message":{"message_id":1,"chat":{"id":1,"type":"private"}}}}',
        b'{"update_id":1,"callback_query":{"id":"7","data":"a","message":{"message_id":1,"chat":{"id":1,"type":"private"}}}}',
        b'{"update_id":1,"message":{"chat":7}}',
        b'{"update_id":1,"message":{"chat":{"id":1,"type":"private"},"text":"a"}}',
        b'{"update_id":1,"message":{"chat":{"id":1,"type":"private"},"from":{"id":1},"message_id":1,"text":"a"}}',
        b'{"update_id":1,"message":{"chat":{"id":1,"type":"private"},"from":{"id":1},"message_id":1,"text":"a","date":9e99}}',
        b'{"update_id":1,"message":{"chat":{"id":1,"type":"private"},"from":{"id":1},"date":99999999999999,"text":"a","message_id":1}}',
    ],
)
def test_what_telegram_would_never_send_is_a_bad_payload(account: Account, body: bytes) -> None:
    with pytest.raises(BadPayload):
        KIND.arrivals(account, body)
