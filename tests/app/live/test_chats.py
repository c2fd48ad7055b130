"""What the visitor of a web chat hears, live."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from app import realtime
from app.database import rows
from app.domain.channels import visitors
from app.domain.conversations import viewers
from app.domain.insight.updates import Update
from app.domain.receiving import signed_visitors
from app.lib import ids
from app.live import representations
from app.models.channels import Channel
from app.models.conversations import Conversation, Message
from tests import talks
from tests.app.live.conftest import Listen, Running
from tests.cast import Api, one, until
from tests.chatting import KEY, make_chat
from tests.listening import Ear

Enter = Callable[..., Ear]
OTHER_KEY = "o" * 32


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_chat(api.workspace_id)


@pytest.fixture
def enter(channel: Channel, realtime: Running) -> Iterator[Enter]:
    """Opens the stream of a visitor of the chat."""
    ears: list[Ear] = []

    def enter(key: str = KEY, **headers: str) -> Ear:
        _, token = visitors.issue(channel, key)
        ears.append(Ear(realtime.port, "/live/chat", {"Authorization": f"Bearer {token}", **headers}).open())
        return ears[-1].until_placed()

    yield enter
    for ear in ears:
        ear.close()


def talk(channel: Channel, contact_id: str, key: str = KEY) -> Conversation:
    """The conversation of a visitor who has written."""
    visitor, _ = visitors.issue(channel, key)
    message = talks.receive(channel.workspace_id, contact_id, channel.id, "First")
    rows("UPDATE conversations SET peer = %s WHERE id = %s", (visitor.peer, message.conversation_id))
    return Conversation.get_by_id(message.conversation_id)


def say(conversation: Conversation, text: str, status: str = "sent", direction: str = "out", **fields: str) -> None:
    columns = {"provider_id": None, **fields}
    rows(
        "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,"
        " author, provider_id, created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, now())",
        (
            *(ids.new("msg"), conversation.workspace_id, conversation.id, conversation.contact_id),
            *(conversation.channel_id, direction, text, status, '{"type": "member", "id": "mem_secret"}'),
            columns["provider_id"],
        ),
    )


def texts(ear: Ear) -> list[str]:
    return [each.data["text"] for each in ear.heard]


def test_a_visitor_hears_the_messages_of_its_own_conversation_only(
    channel: Channel, contact_id: str, enter: Enter
) -> None:
    own = talk(channel, contact_id)
    ear, stranger = enter(), enter(OTHER_KEY)
    say(own, "For you")
    say(own, "Not yet sent", "queued")
    say(own, "End")

    ear.until(lambda _: texts(ear)[-1:] == ["End"])
    assert texts(ear) == ["For you", "End"]
    assert {each.kind for each in ear.heard} == {"message"}
    assert stranger.listen().heard == []


def test_a_visitor_hears_no_notes(api: Api, channel: Channel, contact_id: str, enter: Enter) -> None:
    own, ear = talk(channel, contact_id), enter()
    talks.add_note(api, own.id, "Is rude")
    say(own, "End")

    ear.until(lambda heard: heard)
    assert texts(ear) == ["End"]
    assert b"rude" not in ear.raw


def test_a_visitor_hears_that_its_messages_were_read_and_of_no_other_change(
    channel: Channel, contact_id: str, enter: Enter
) -> None:
    own = talk(channel, contact_id)
    ear, stranger = enter(), enter(OTHER_KEY)
    change = "UPDATE conversations SET {} WHERE id = %s"
    rows(change.format("assignee_id = 'mem_secret'"), (own.id,))
    rows(change.format("unread = 0"), (own.id,))

    ear.until(lambda heard: heard)
    assert [(each.kind, each.data) for each in ear.heard] == [("read", {"unread": 0})]
    assert stranger.listen().heard == []


def test_a_visitor_learns_nothing_of_who_answers(channel: Channel, contact_id: str, enter: Enter) -> None:
    own, ear = talk(channel, contact_id), enter()
    say(own, "Hello")

    ear.until(lambda heard: heard)
    assert b"mem_secret" not in ear.raw
    assert ear.heard[0].data.keys() == {
        *("id", "client_id", "direction", "text", "attachments", "buttons", "button_id", "status", "at", "edited_at")
    }


def test_a_visitor_recognizes_its_own_message_by_the_identifier_of_its_page(
    channel: Channel, contact_id: str, enter: Enter
) -> None:
    visitor, _ = visitors.issue(channel, KEY)
    own, ear = talk(channel, contact_id), enter()
    say(own, "Mine", "received", "in", provider_id=f"{visitor.id}:page-1")

    ear.until(lambda heard: heard)
    assert ear.heard[0].data["client_id"] == "page-1"


def test_a_visitor_goes_on_behind_what_it_heard_last(channel: Channel, contact_id: str, enter: Enter) -> None:
    own, ear = talk(channel, contact_id), enter()
    say(own, "1")
    ear.until(lambda heard: heard)
    ear.close()
    say(own, "2")
    ear.open()
    say(own, "3")

    ear.until(lambda _: texts(ear) == ["1", "2", "3"])


def test_a_visitor_that_comes_back_makes_nobody_read_other_conversations(
    api: Api, channel: Channel, contact_id: str, enter: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = talk(channel, contact_id), talk(channel, api.contact(email="eve@example.com")["id"], OTHER_KEY)
    ear = enter()
    ear.close()
    say(own, "1")
    say(other, "Elsewhere")
    loaded, load = list[Update](), representations.load
    monkeypatch.setattr(representations, "load", lambda updates: load(loaded.extend(updates) or updates))
    ear.open()

    ear.until(lambda _: texts(ear) == ["1"])
    assert [Message.get_by_id(update.subject_id).text for update in loaded] == ["1"]


def test_a_visitor_cannot_go_on_from_the_place_of_another_listener(
    api: Api, channel: Channel, contact_id: str, enter: Enter, listen: Listen
) -> None:
    talk(channel, contact_id)
    ear, stranger, member = enter(), enter(OTHER_KEY), listen(api)
    for place in (stranger.place, member.place, "1:1:;1:1:;7"):
        ear.heard.clear()
        ear.place = place
        ear.open().until(lambda heard: [each.kind for each in heard] == ["reset"])


def test_typing_is_seen_by_the_others_of_the_conversation(
    api: Api, channel: Channel, contact_id: str, enter: Enter, listen: Listen, signs: None
) -> None:
    own = talk(channel, contact_id)
    visitor, member = enter(), listen(api)
    stranger = enter(OTHER_KEY)
    author = {"type": "member", "id": "mem_1"}

    realtime.typing(api.workspace_id, own.id, author, channel.id, own.peer)
    visitor.until(lambda heard: heard)
    member.until(lambda heard: [each for each in heard if each.kind == "typing"])
    assert [(each.kind, each.data) for each in visitor.heard] == [("typing", {"author": {"type": "member"}})]
    assert member.heard[-1].data == {"conversation_id": own.id, "author": author}

    visitor_id = visitors.issue(channel, KEY)[0].id
    realtime.typing(api.workspace_id, own.id, {"type": "contact", "id": visitor_id}, channel.id, own.peer)
    member.until(lambda heard: len([each for each in heard if each.kind == "typing"]) == 2)
    assert len(visitor.listen().heard) == 1
    assert stranger.listen().heard == []


def test_that_somebody_looks_is_seen_by_members_and_never_by_the_visitor(
    api: Api, channel: Channel, contact_id: str, enter: Enter, listen: Listen, signs: None
) -> None:
    own = talk(channel, contact_id)
    visitor, member = enter(), listen(api)
    author = {"type": "member", "id": "mem_1"}

    viewers.look(own, author)

    member.until(lambda heard: [each for each in heard if each.data.get("conversation_id") == own.id])
    assert (member.heard[-1].kind, member.heard[-1].data["author"]) == ("presence", author)
    assert visitor.listen().heard == []


def test_the_stream_of_a_chat_is_refused_to_anybody_else(channel: Channel, realtime: Running) -> None:
    _, token = visitors.issue(channel, KEY)
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer bhv_" + "0" * 64}, 401),
        ({"Authorization": f"Bearer {token}", "Origin": "https://evil.example"}, 403),
    ):
        ear = Ear(realtime.port, "/live/chat", headers).open()
        assert ear.status == status
        assert ear.body()["status"] == status
    assert one("SELECT count(*) FROM messages") == 0


def test_a_page_of_an_allowed_origin_may_ask_and_read(channel: Channel, enter: Enter) -> None:
    [origin, *_] = channel.settings["origins"]

    ear = enter(Origin=origin)
    assert (ear.status, ear.head["access-control-allow-origin"]) == (200, origin)
    asked = Ear(ear.port, "/live/chat", {"Origin": origin, "Access-Control-Request-Headers": "authorization"})
    asked.open("OPTIONS")
    assert asked.status == 204
    assert "authorization" in asked.head["access-control-allow-headers"]


def test_the_stream_of_a_visitor_who_is_joined_to_a_user_ends_and_comes_back_with_the_users_messages(
    channel: Channel, contact_id: str, enter: Enter, signs: None
) -> None:
    own = talk(channel, contact_id)
    signed_visitors.join(visitors.issue(channel, KEY)[0], "user-7", "trace-1")
    elsewhere, stranger = enter(OTHER_KEY), enter("s" * 32)

    signed_visitors.join(visitors.issue(channel, OTHER_KEY)[0], "user-7", "trace-1")
    until(lambda: elsewhere.listen().is_over)
    elsewhere.open().until_placed()
    say(own, "For the user")

    elsewhere.until(lambda _: texts(elsewhere) == ["For the user"])
    assert not stranger.listen().is_over
    assert stranger.heard == []
