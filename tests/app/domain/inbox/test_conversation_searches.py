"""Searches of conversations: by messages, by parts of a contact's names and addresses, and by identifiers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.domain.inbox import conversation_searches
from app.domain.inbox.conversation_searches import Hit, marked
from app.models.conversations import Message
from tests.cast import Api
from tests.talks import receive

Say = Callable[..., Message]


@pytest.fixture
def say(api: Api, channel_id: str) -> Say:
    def say(text: str, **contact: str) -> Message:
        return receive(api.workspace_id, api.contact(**contact)["id"], channel_id, text)

    return say


def hits(api: Api, text: str, **options: object) -> list[Hit]:
    return conversation_searches.find(api.workspace_id, text, **{"last_id": None, "limit": 50, **options}).hits


def found(api: Api, text: str) -> list[str]:
    return [hit.conversation.id for hit in hits(api, text)]


def lines(api: Api, text: str) -> list[str]:
    """The lines, with what was sought in brackets."""
    return ["".join(f"[{piece}]" if is_sought else piece for piece, is_sought in hit.line) for hit in hits(api, text)]


def test_words_of_messages_are_found_by_their_beginnings(api: Api, say: Say) -> None:
    say("Where is my refund?", external_id="ada")
    say("Two tulips, please.", external_id="grace")

    assert lines(api, "refu") == ["Where is my [refu]nd?"]
    assert lines(api, "tulips two") == ["[Two] [tulips], please."]
    assert lines(api, "efund") == []


@pytest.mark.parametrize(
    "text", ["moreau", "Moreau Camille", "camille mor", "reau", "camille.m@example", "+49 30 123456", "c-77"]
)
def test_contacts_are_found_by_parts_in_any_order(api: Api, say: Say, text: str) -> None:
    named = {"first_name": "Camille", "last_name": "Moreau", "email": "camille.m@example.com"}
    talk = say("Hello", **named, phone="+4930123456", external_id="c-77").conversation_id
    say("Hello", external_id="other", first_name="Camilla")

    assert found(api, text) == [talk]


def test_identifiers_lead_to_their_conversation(api: Api, say: Say) -> None:
    message = say("Hello", external_id="ada")
    say("Hello", external_id="grace")

    for identifier in (message.id, message.conversation_id, message.contact_id):
        assert found(api, identifier) == [message.conversation_id]


def test_a_conversation_is_found_once_and_contacts_come_first(api: Api, say: Say) -> None:
    wrote = [say("The tulip is red", external_id="ada").conversation_id for _ in range(2)]
    named = say("Hello", external_id="x", first_name="Tulip").conversation_id

    assert found(api, "tulip") == [named, wrote[0]]


def test_a_search_goes_on_after_its_last_message(api: Api, say: Say) -> None:
    talks = [say("tulip", external_id=str(number)).conversation_id for number in range(3)]

    first = conversation_searches.find(api.workspace_id, "tulip", None, 2)
    then = conversation_searches.find(api.workspace_id, "tulip", first.last_id, 2)

    assert [hit.conversation.id for hit in (*first.hits, *then.hits)] == talks[::-1]
    assert then.last_id is None


def test_more_contacts_than_are_shown_are_told(api: Api, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_searches, "MOST_CONTACTS", 1)
    for number in range(2):
        say("Hello", external_id=str(number), first_name="Ada")

    assert len(hits(api, "ada")) == 1
    assert conversation_searches.find(api.workspace_id, "ada", None, 50).has_more_contacts


def test_nothing_of_another_workspace_is_found(api: Api, others: Api, say: Say) -> None:
    message = say("tulip", external_id="ada", first_name="Tulip")

    for text in ("tulip", message.id, message.conversation_id, message.contact_id):
        assert found(others, text) == []


@pytest.mark.parametrize("text", ["", " ", "%", "_", "?!", "' OR 1=1", "\\", "x" * 5_000, "💐", "\0"])
def test_any_text_can_be_sought(api: Api, say: Say, text: str) -> None:
    say("Hello", external_id="ada")

    assert found(api, text) == []


def test_the_line_shows_what_was_found_in_a_long_text() -> None:
    pieces = marked("a " * 200 + "tulip" + " b" * 200, ["tul"])

    assert ("tul", True) in pieces
    assert sum(len(piece) for piece, _ in pieces) < 170
    assert marked("今日は花を買う", ["花を"]) == [("今日は", False), ("花を", True), ("買う", False)]
    assert marked("x", []) == [("x", False)]


def test_a_search_costs_the_same_however_many_are_found(api: Api, say: Say, statements: list[str]) -> None:
    say("tulip", external_id="ada", first_name="Tulip")
    found(api, "tulip")
    statements.clear()
    found(api, "tulip")
    of_one = len(statements)
    for number in range(5):
        say("tulip", external_id=str(number), first_name="Tulip")
    statements.clear()

    found(api, "tulip")

    assert len(statements) == of_one
