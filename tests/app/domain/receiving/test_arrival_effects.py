"""Effects of arrivals: who wrote, in which conversation, and what edits, echoes and blocks change."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.channels.inbound import Blocked, Edited, Media
from app.database import rows
from app.domain.conversations import messages
from app.lib import ids, json
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from tests.arriving import AT, POST, arrive, echoed, make_post, receipt, received
from tests.automations import carry_on, make_automation
from tests.cast import Api, all_of, event_bodies, event_kinds, one
from tests.talks import close


@pytest.fixture
def channel(workspace_id: str) -> Channel:
    return make_post(workspace_id)


def edited(text: str | None, at: datetime = AT, key: str = "x1", provider_id: str = "m-1") -> Edited:
    return Edited(key, "ada", provider_id, at, text)


def texts() -> list[Any]:
    return all_of("SELECT text FROM messages ORDER BY id")


# Messages


def test_somebody_new_becomes_a_contact_with_an_identity_and_a_conversation(channel: Channel) -> None:
    arrive(channel, received("Hi", name="Ada  Lovelace King", phone="+4930123456", locale="pt-br"))

    contact, talk, message = Contact.get(), Conversation.get(), Message.get()
    assert (contact.first_name, contact.last_name, contact.locale) == ("Ada", "Lovelace King", "pt-br")
    assert (contact.phone, contact.opted_out) == ("+4930123456", False)
    assert all_of("SELECT address FROM identities WHERE contact_id = %s", contact.id) == ["post:ada"]
    assert (talk.contact_id, talk.channel_id, talk.peer, talk.status) == (contact.id, channel.id, "chat-ada", "open")
    assert (message.conversation_id, message.contact_id, message.channel_id) == (talk.id, contact.id, channel.id)
    assert (message.text, message.status, message.direction) == ("Hi", "received", "in")
    assert (message.provider_id, message.provider_time) == ("m-1", AT)
    assert message.author == {"type": "contact", "id": contact.id}
    kinds = ["contact.created", "conversation.opened", "message.received"]
    assert event_kinds(channel.workspace_id) == kinds


def test_the_next_message_is_in_the_same_conversation(channel: Channel) -> None:
    arrive(channel, received("Hi", "1", name="Ada"))
    arrive(channel, received("Are you there?", "2", name="Another Name"))

    assert [one(f"SELECT count(*) FROM {table}") for table in ("contacts", "identities", "conversations")] == [1, 1, 1]
    assert texts() == ["Hi", "Are you there?"]
    assert one("SELECT unread FROM conversations") == 2
    assert one("SELECT first_name FROM contacts") == "Ada"


def test_a_message_of_the_providers_identifier_is_stored_once_under_whatever_key(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    arrive(channel, received("Hi", "2", provider_id="m-1"), received("Hi", "3", provider_id="m-1"))

    assert texts() == ["Hi"]
    assert one("SELECT unread FROM conversations") == 1


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>", None),
        ("a\0b\nc", "ab", "c"),
        ("\u202egnp.exe \u200b", "gnp.exe", None),
        (" \t", None, None),
        ("x" * 300, "x" * 255, None),
    ],
)
def test_hostile_names_are_kept_as_one_harmless_line(
    channel: Channel, name: str, first: str | None, last: str | None
) -> None:
    arrive(channel, received(name=name))

    assert (one("SELECT first_name FROM contacts"), one("SELECT last_name FROM contacts")) == (first, last)


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=alert(1)>", "\u202eabc\u200b", "''; DROP TABLE", "🙂" * 5_000, None]
)
def test_a_text_is_kept_as_it_is(channel: Channel, text: str | None) -> None:
    arrive(channel, received(text))

    assert texts() == [text]


def test_a_text_loses_only_what_cannot_be_stored(channel: Channel) -> None:
    arrive(channel, received("a\0b"), edited("c\0d"))

    assert texts() == ["cd"]


@pytest.mark.parametrize("locale", ["x", "klingon-language", ""])
def test_a_locale_that_is_none_is_left_out(channel: Channel, locale: str) -> None:
    arrive(channel, received(locale=locale))

    assert one("SELECT locale FROM contacts") is None


def test_the_providers_document_is_kept_for_a_month_and_shown(api: Api, channel: Channel) -> None:
    document = {"order": {"items": [1]}}
    for key in ("1", "2"):
        arrive(channel, received("An order", key, payload=document))
    first, second = all_of("SELECT id FROM messages ORDER BY id")
    assert api.get(f"messages/{first}").json["data"]["provider_payload"] == document
    assert event_bodies(channel.workspace_id)[-1]["data"]["message"]["provider_payload"] == document
    assert rows("SELECT unread, waiting_since IS NULL FROM conversations") == [(2, False)]

    rows("UPDATE messages SET created_at = now() - interval '31 days' WHERE id = %s", (first,))

    assert (messages.forget_payloads(), messages.forget_payloads()) == (1, 0)
    kept = [api.get(f"messages/{each}").json["data"]["provider_payload"] for each in (first, second)]
    assert kept == [None, document]


def photo(number: int, album: str | None = "a-1", **fields: Any) -> Any:
    return received(fields.pop("text", None), str(number), media=[Media(f"f{number}")], album=album, **fields)


@pytest.mark.parametrize("is_together", [True, False])
def test_an_album_is_one_message_with_its_files(channel: Channel, *, is_together: bool) -> None:
    steps = [{"id": "thanks", "kind": "send_message", "text": "Thank you"}]
    make_automation(channel.workspace_id, {"triggers": [{"event": "message.received"}], "steps": steps})
    photos = [photo(1, text="Broken"), photo(2), photo(3, text="See?"), photo(4)]

    for each in [photos] if is_together else [[single] for single in photos]:
        arrive(channel, *each)
        carry_on(channel.workspace_id)

    [message] = Message.select().where(Message.direction == "in")
    assert (message.text, len(message.attachments)) == ("Broken\nSee?", 4)
    assert all_of("SELECT DISTINCT message_id FROM uploads") == [message.id]
    assert one("SELECT unread FROM conversations") == 1
    assert all_of("SELECT text FROM messages WHERE direction = 'out'") == ["Thank you"]


def test_another_album_and_another_persons_are_messages_of_their_own(channel: Channel) -> None:
    arrive(channel, photo(1), photo(2, "a-2"), photo(3, sender="bob"), photo(4, None), photo(5, None))

    assert [len(each.attachments) for each in Message.select()] == [1] * 5


# Presses


def offer(channel: Channel, label: str, provider_id: str = "asked-1") -> None:
    """A message with a button, which the provider knows by that identifier."""
    rows(
        "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,"
        " author, provider_id, buttons) SELECT %s, workspace_id, id, contact_id, channel_id, 'out', 'Sure?', 'sent',"
        " '{}', %s, %s FROM conversations WHERE channel_id = %s",
        (ids.new("msg"), provider_id, json.dumps([{"id": "yes", "label": label}]).decode(), channel.id),
    )


def test_a_press_is_a_message_that_says_which_button(channel: Channel) -> None:
    arrive(channel, received("Yes, please", button_id="yes", pressed="asked-1"))

    message = event_bodies(channel.workspace_id)[-1]["data"]["message"]
    assert (message["text"], message["button_id"], message["direction"]) == ("Yes, please", "yes", "in")
    assert one("SELECT count(*) FROM read_receipts") == 0


def test_of_a_press_without_a_label_we_know_it(workspace_id: str, channel: Channel) -> None:
    other = make_post(workspace_id)
    for each, label in ((channel, "Ours"), (other, "Theirs")):
        arrive(each, received("Hi", "1"))
        offer(each, label)

    for key, pressed in (("2", "asked-1"), ("3", "asked-2"), ("4", None)):
        arrive(channel, received(None, key, button_id="yes", pressed=pressed))
    arrive(channel, received(None, "5", button_id="no", pressed="asked-1"))
    arrive(other, received(None, "6", button_id="yes", pressed="asked-1"))

    texts = all_of("SELECT text FROM messages WHERE button_id IS NOT NULL ORDER BY id")
    assert texts == ["Ours", "yes", "yes", "no", "Theirs"]


def test_a_press_is_confirmed_once_where_the_contacts_app_waits_for_it(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(POST), "confirms_presses", True)

    for _ in range(2):
        arrive(channel, received("Yes", "2", button_id="yes"), received("Hi", "3"))

    assert rows("SELECT provider_id, conversation_id, channel_id FROM read_receipts") == [
        ("m-2", one("SELECT id FROM conversations"), channel.id)
    ]
    assert one("SELECT count(*) FROM messages") == 2


# Phones


def test_what_arrives_is_kept_with_composed_letters(channel: Channel) -> None:
    arrive(channel, received("cre\u0300me", name="Zoe\u0308 King"))

    assert (one("SELECT text FROM messages"), one("SELECT first_name FROM contacts")) == ("cr\u00e8me", "Zo\u00eb")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("+4930123456", "+4930123456"),
        ("+5511987654321", "+551187654321"),
        ("+5491123456789", "+541123456789"),
        ("+525512345678", "+5215512345678"),
    ],
)
def test_an_attested_phone_finds_the_contact_that_has_it(api: Api, channel: Channel, ours: str, theirs: str) -> None:
    contact = api.contact(phone=ours, first_name="Ada")

    arrive(channel, received("Hi", phone=theirs, name="Somebody Else"))

    assert all_of("SELECT contact_id FROM messages") == [contact["id"]]
    assert (one("SELECT phone FROM contacts"), one("SELECT first_name FROM contacts")) == (ours, "Ada")
    assert one("SELECT contact_id FROM identities") == contact["id"]


def test_a_phone_that_is_attested_later_is_kept(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    arrive(channel, received(None, "2", phone="+4930123456"))

    assert all_of("SELECT phone FROM contacts") == ["+4930123456"]
    assert "contact.updated" in event_kinds(channel.workspace_id)


def test_a_phone_that_is_attested_later_makes_two_contacts_one(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    customer = api.contact(phone="+4930123456", external_id="customer-1")

    arrive(channel, received("It is me", "2", phone="+4930123456"), received("Hello?", "3"))

    assert all_of("SELECT id FROM contacts") == [customer["id"]]
    assert all_of("SELECT contact_id FROM identities") == [customer["id"]]
    assert all_of("SELECT contact_id FROM conversations") == [customer["id"]]
    api.apply()
    assert all_of("SELECT DISTINCT contact_id FROM messages") == [customer["id"]]
    assert texts() == ["Hi", "It is me", "Hello?"]
    assert "contact.merged" in event_kinds(channel.workspace_id)


def test_two_contacts_that_the_shop_tells_apart_are_only_suggested(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    api.contact(phone="+4930123456", external_id="customer-1")
    rows("UPDATE contacts SET external_id = 'customer-2' WHERE phone IS NULL")

    arrive(channel, received("It is me", "2", phone="+4930123456"), received(None, "3", phone="+4930123456"))

    assert one("SELECT count(*) FROM contacts") == 2
    assert all_of("SELECT reason FROM suggested_merges") == ["same_phone"]


def test_a_receipt_counts_while_the_messages_of_a_merge_are_still_moved(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1"), echoed("Hello"))
    api.contact(phone="+4930123456", external_id="customer-1")
    arrive(channel, received("It is me", "2", phone="+4930123456"))

    arrive(channel, receipt("read", "m-e1"), edited("Hi!"))

    assert one("SELECT status FROM messages WHERE direction = 'out'") == "read"
    assert texts()[0] == "Hi!"


def test_what_is_no_phone_is_not_kept(channel: Channel) -> None:
    arrive(channel, received("Hi", phone="BR.1337"))

    assert all_of("SELECT phone FROM contacts") == [None]


def test_the_contact_of_another_workspace_is_another(others: Api, channel: Channel) -> None:
    theirs = make_post(others.workspace_id)
    others.contact(phone="+4930123456")

    arrive(channel, received(phone="+4930123456"))
    arrive(theirs, received())

    assert one("SELECT count(*) FROM contacts") == 3
    assert one("SELECT count(DISTINCT workspace_id) FROM messages") == 2


def test_somebody_whose_contact_was_deleted_is_somebody_new(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    first = one("SELECT id FROM contacts")
    api.done(api.delete(f"contacts/{first}"))

    arrive(channel, received("Back", "2"), edited("Erased?"))

    assert one("SELECT id FROM contacts") != first
    assert one("SELECT contact_id FROM identities") == one("SELECT id FROM contacts")
    assert one("SELECT text FROM messages WHERE contact_id = %s", first) is None


# Conversations


def test_a_closed_conversation_is_reopened(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    close(channel.workspace_id, one("SELECT id FROM contacts"))

    arrive(channel, received("Back", "2"))

    assert all_of("SELECT status FROM conversations") == ["open"]
    assert event_kinds(channel.workspace_id)[-2:] == ["conversation.opened", "message.received"]


def test_or_a_new_one_is_opened_where_the_channel_does_not_reopen(workspace_id: str) -> None:
    channel = make_post(workspace_id, reopen=False)
    arrive(channel, received("Hi", "1"))
    close(workspace_id, one("SELECT id FROM contacts"))

    arrive(channel, received("Back", "2"), received("Again", "3"))

    assert all_of("SELECT status FROM conversations ORDER BY id") == ["closed", "open"]
    assert all_of("SELECT unread FROM conversations ORDER BY id") == [1, 2]


def test_each_peer_of_a_contact_has_a_conversation_of_its_own(channel: Channel) -> None:
    arrive(channel, received("Hi", "1", phone="+4930123456"))
    arrive(channel, received("Hi", "2", sender="ada's other phone", phone="+4930123456"), received("Yes", "3"))

    assert one("SELECT count(*) FROM contacts") == 1
    assert all_of("SELECT peer FROM conversations ORDER BY id") == ["chat-ada", "chat-ada's other phone"]
    assert all_of("SELECT unread FROM conversations ORDER BY id") == [2, 1]


def test_the_window_is_counted_from_the_providers_time_and_never_shrinks(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    assert one("SELECT window_ends_at FROM conversations") == AT + timedelta(hours=24)

    arrive(channel, received("Late", "2", at=AT - timedelta(hours=1)), received("Hi", "3", at=AT + timedelta(hours=1)))

    assert one("SELECT window_ends_at FROM conversations") == AT + timedelta(hours=25)


def test_the_event_tells_of_the_message_in_its_conversation(channel: Channel) -> None:
    arrive(channel, received("Hi", name="Ada"))

    data = event_bodies(channel.workspace_id)[-1]["data"]
    assert data["message"]["text"] == "Hi"
    assert data["conversation"]["last_message_at"] == data["message"]["created_at"]
    assert data["contact"]["first_name"] == "Ada"


# Runs


def test_a_reply_reaches_the_run_that_waits_for_it(channel: Channel) -> None:
    steps = [{"id": "ask", "kind": "wait_for_reply", "save_as": "answer"}, {"id": "end", "kind": "stop"}]
    definition = {"triggers": [{"event": "message.received"}], "steps": steps}
    make_automation(channel.workspace_id, definition)
    arrive(channel, received("Hi", "1"))
    carry_on(channel.workspace_id)
    assert all_of("SELECT status FROM runs") == ["waiting"]

    arrive(channel, received("Blue", "2", button_id="blue"))
    carry_on(channel.workspace_id)

    first = "SELECT {} FROM runs ORDER BY id LIMIT 1"
    assert one(first.format("status")) == "completed"
    assert one(first.format("saved->'ask'->>'button_id'")) == "blue"
    assert one("SELECT count(*) FROM messages WHERE run_id IS NOT NULL") == 1


def test_the_answers_of_a_form_reach_the_run_that_waits_for_them(channel: Channel) -> None:
    steps = [
        {"id": "form", "kind": "wait_for_reply"},
        {"id": "note", "kind": "set_field", "field": "rating", "value": "{{ steps.form.data.rating }}"},
        {"id": "end", "kind": "stop"},
    ]
    make_automation(channel.workspace_id, {"triggers": [{"event": "message.received"}], "steps": steps})
    arrive(channel, received("Hi", "1"))
    carry_on(channel.workspace_id)

    arrive(channel, received("Sent", "2", data={"rating": "5"}))
    carry_on(channel.workspace_id)

    assert all_of("SELECT custom_fields->>'rating' FROM contacts") == ["5"]
    assert all_of("SELECT data FROM messages ORDER BY id") == [None, {"rating": "5"}]


@pytest.mark.parametrize("event", ["message.received", "conversation.opened"])
def test_an_automation_can_tell_where_a_contact_comes_from(channel: Channel, event: str) -> None:
    come = {"field": "conversation.referral.source_id", "is": "equals", "value": "120"}
    steps = [{"id": "tag", "kind": "add_tag", "tag": "{{ conversation.referral.headline }}"}]
    make_automation(channel.workspace_id, {"triggers": [{"event": event, "if": come}], "steps": steps})

    boots = {"source_id": "120", "headline": "Boots"}
    arrive(channel, received("Hi", "1"), received("Hello", "2", "bob", referral=boots))
    carry_on(channel.workspace_id)
    arrive(channel, received("Still there?", "3", "bob"))

    assert all_of("SELECT tags FROM contacts WHERE tags <> '{}'") == [["Boots"]]
    assert all_of("SELECT referral FROM conversations ORDER BY id") == [None, boots]


# Edits


def test_an_edit_changes_the_text_and_triggers_nothing(channel: Channel) -> None:
    arrive(channel, received("Hi"))
    before = event_kinds(channel.workspace_id)

    arrive(channel, edited("Hi!", AT + timedelta(seconds=5)))

    assert texts() == ["Hi!"]
    assert one("SELECT edited_at FROM messages") == AT + timedelta(seconds=5)
    assert event_kinds(channel.workspace_id) == before
    assert one("SELECT unread FROM conversations") == 1


def test_of_several_edits_the_latest_counts(channel: Channel) -> None:
    later, sooner = AT + timedelta(seconds=9), AT + timedelta(seconds=5)

    arrive(channel, received("1"), edited("3", later, "x2"), edited("2", sooner, "x1"))

    assert texts() == ["3"]


def test_an_edit_of_nothing_we_have_changes_nothing(channel: Channel) -> None:
    arrive(channel, edited("Hi!"))

    assert texts() == []
    assert one("SELECT count(*) FROM contacts") == 0


# Echoes


def test_an_echo_is_a_message_of_the_business(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    echo = echoed("Hello from the phone")
    arrive(channel, echo, replace(echo, key="e2"))

    message = Message.get(Message.direction == "out")
    assert (message.text, message.status, message.provider_id) == ("Hello from the phone", "sent", "m-e1")
    assert message.author == {"type": "provider", "id": channel.id}
    assert one("SELECT count(*) FROM messages") == 2
    assert one("SELECT unread FROM conversations") == 1
    assert one("SELECT waiting_since IS NULL AND first_answered_at IS NOT NULL FROM conversations")
    assert event_kinds(channel.workspace_id)[-1] == "message.sent"


def test_an_echo_leaves_a_closed_conversation_closed(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    close(channel.workspace_id, one("SELECT id FROM contacts"))

    arrive(channel, echoed())

    assert all_of("SELECT status FROM conversations") == ["closed"]


def test_an_echo_to_somebody_new_opens_a_conversation(channel: Channel) -> None:
    arrive(channel, echoed())

    assert all_of("SELECT peer FROM conversations") == ["chat-ada"]
    assert all_of("SELECT address FROM identities") == ["post:ada"]


def test_the_echo_of_a_message_that_we_sent_is_no_other(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"), echoed("Hello"))
    rows("UPDATE messages SET provider_id = 'm-e9', author = '{\"type\": \"api\"}' WHERE direction = 'out'")

    arrive(channel, echoed("Hello", "e9"))

    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 1


# Opt-outs


@pytest.mark.parametrize(("text", "opted_out"), [("STOP", True), ("Stop by at noon", False), ("Abmelden!", True)])
def test_a_word_of_opting_out_counts_if_it_is_all(channel: Channel, text: str, *, opted_out: bool) -> None:
    arrive(channel, received(text))

    assert all_of("SELECT opted_out FROM contacts") == [opted_out]
    assert texts() == [text]


def test_a_pressed_button_opts_nobody_out_by_an_everyday_word(channel: Channel) -> None:
    arrive(channel, received("Alto", "1", button_id="alto"))
    assert all_of("SELECT opted_out FROM contacts") == [False]

    arrive(channel, received("Stop", "2", button_id="stop"))
    assert all_of("SELECT opted_out FROM contacts") == [True]


@pytest.mark.parametrize(
    ("label", "reply", "opted_out"), [("Alto", " ALTO", False), ("Bajo", "Alto", True), ("STOP", "STOP", True)]
)
def test_nor_does_the_label_of_a_button_that_is_typed(
    channel: Channel, label: str, reply: str, *, opted_out: bool
) -> None:
    arrive(channel, received("Hola", "1"))
    offer(channel, label)

    arrive(channel, received("¿Cuál?", "2"), received(reply, "3"))

    assert all_of("SELECT opted_out FROM contacts") == [opted_out]


@pytest.mark.parametrize(("reply", "opted_out"), [("Alto", False), ("STOP", True)])
def test_nor_does_the_reply_that_a_run_waits_for(channel: Channel, reply: str, *, opted_out: bool) -> None:
    steps = [{"id": "size", "kind": "ask", "text": "Alto o bajo?"}, {"id": "end", "kind": "stop"}]
    make_automation(channel.workspace_id, {"triggers": [{"event": "message.received"}], "steps": steps})
    arrive(channel, received("Hola", "1"))
    carry_on(channel.workspace_id)
    arrive(channel, received(reply, "2"))
    carry_on(channel.workspace_id)

    assert one("SELECT saved->'size'->>'value' FROM runs ORDER BY id LIMIT 1") == reply
    assert all_of("SELECT opted_out FROM contacts") == [opted_out]

    # No run waits any more.
    rows("UPDATE automations SET status = 'paused'")
    arrive(channel, received("Alto", "3"))
    assert all_of("SELECT opted_out FROM contacts") == [True]


def test_only_start_takes_it_back(channel: Channel) -> None:
    arrive(channel, received("STOP", "1"), received("Hello?", "2"))
    arrive(channel, Blocked("b", "ada", AT, is_blocked=False))
    assert all_of("SELECT opted_out FROM contacts") == [True]

    arrive(channel, received("/start", "3"))

    assert all_of("SELECT opted_out FROM contacts") == [False]
    assert event_bodies(channel.workspace_id)[-1]["data"]["contact"]["opted_out"] is False


def test_who_writes_after_opting_out_has_asked(channel: Channel) -> None:
    asked_at = "SELECT asked_at FROM conversations"
    arrive(channel, received("Hi", "1"), received("Earlier", "2", at=AT - timedelta(hours=1)))
    assert one(asked_at) == AT

    arrive(channel, received("STOP", "3"))
    assert one(asked_at) is None

    arrive(channel, received("Where is my parcel?", "4", at=AT + timedelta(hours=1)))
    assert one(asked_at) == AT + timedelta(hours=1)
    assert all_of("SELECT opted_out FROM contacts") == [True]


def test_who_blocks_us_has_opted_out(channel: Channel) -> None:
    arrive(channel, received("Hi"))

    arrive(channel, Blocked("b", "ada", AT, is_blocked=True), Blocked("c", "nobody", AT, is_blocked=True))

    assert all_of("SELECT opted_out FROM contacts") == [True]
    assert event_kinds(channel.workspace_id)[-1] == "contact.updated"
