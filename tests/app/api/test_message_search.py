"""Search in the texts of messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from app.database import rows
from app.lib import ids
from app.models import message_searches
from tests.cast import Api, one
from tests.later import schedule
from tests.talks import make_channel, receive


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(external_id="ada")["id"])


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_channel(api.workspace_id)


@pytest.fixture(params=[300, 1], ids=["among the newest", "by index"])
def looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the newest messages are all there are, and once only one of them is looked at first."""
    monkeypatch.setattr(message_searches, "LOOKED_AT", request.param)


def found(api: Api, q: str, **filters: Any) -> list[str]:
    """The texts that are found."""
    query = "&".join(f"{name}={quote(str(value))}" for name, value in {"q": q, **filters}.items())
    answer = api.get(f"messages?{query}")
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json["data"]]


@pytest.mark.parametrize(
    ("text", "finding", "missing"),
    [
        (
            "Where is my delivery?",
            ["where", "DELIVERY", "deliv", "delivery my", "d", "is my?"],
            ["livery", "deliveries"],
        ),
        ("Order-5107 for foo@bar.com", ["5107", "order 51", "bar.com", "foo@bar", "order-5107"], ["107", "5108"]),
        ("Don't!", ["don't", "don", "'don'"], ["dont"]),
        ("Größe und ÄRGER", ["größe", "GRÖ", "ärger", "ärg", "GRÖSSE"], ["groesse"]),
        ("cre\u0300me \uff29\uff2e\uff26\uff2f BİLGİ", ["crème", "cre\u0300me", "info", "bilgi", "BILGI"], ["creme"]),
        ("ΠΛΗΡΟΦΟΡΙΕΣ \u03b3\u03b9\u03b1 σας", ["πληροφορίες", "ΣΑΣ", "γιά"], ["φορίες"]),
        ("or\u200bder \ufb01ne", ["order", "fine", "or\u00adder"], ["der"]),
        ("Привет, как дела?", ["привет", "ПРИВЕТ", "дел"], ["ривет"]),
        ("Καλημέρα σας", ["καλη", "ΣΑ", "ΚΑΛΗΜΕΡΑ"], ["ημέρα"]),
        ("مرحبا، كيف حالك؟", ["مرحبا", "كيف", "حال"], ["رحبا"]),
        ("नमस्ते। कैसे हैं", ["नमस्ते", "कैसे"], ["मस्ते"]),
        ("안녕하세요 주문은요", ["안녕", "주문"], ["녕하"]),
        (
            "iPhone手机的配送状况。谢谢",
            ["手机", "配送", "送状况", "配", "iphone", "谢谢", "iphone 配送"],
            ["机手", "phone"],
        ),
        ("ご注文ありがとうございます", ["注文", "ありがとう", "ございます", "ご"], ["注ご"]),
        ("ขอบคุณครับสินค้า", ["ขอบคุณ", "สินค้า", "ครับ"], ["บขอ"]),
        ("Great👍👍 thanks", ["👍", "great", "👍 thanks"], ["👎"]),
        ("x" * 60 + " end", ["x" * 50, "x" * 60, "end"], ["y"]),
        ("a 100% _real_ \\ 'test'", ["100%", "_real_", "'test'", "real"], ["%", "_", "\\", "'"]),
    ],
)
@pytest.mark.usefixtures("looked_at")
def test_words_and_beginnings_of_words_are_found(
    api: Api, contact_id: str, channel_id: str, text: str, finding: list[str], missing: list[str]
) -> None:
    receive(api.workspace_id, contact_id, channel_id, text)
    receive(api.workspace_id, contact_id, channel_id, "Something else")

    assert {q: found(api, q) for q in finding} == {q: [text] for q in finding}
    assert {q: found(api, q) for q in missing} == {q: [] for q in missing}


@pytest.mark.usefixtures("looked_at")
def test_filters_narrow_it(api: Api, others: Api, contact_id: str, channel_id: str) -> None:
    eve = api.contact(external_id="eve")["id"]
    first = receive(api.workspace_id, contact_id, channel_id, "Refund, one")
    second = receive(api.workspace_id, eve, channel_id, "Refund, two")
    theirs = others.contact(external_id="ada")["id"]
    receive(others.workspace_id, theirs, make_channel(others.workspace_id), "Refund, theirs")
    before = datetime.now(UTC) - timedelta(days=3)
    rows("UPDATE messages SET id = %s WHERE id = %s", (ids.bound("msg", before), first.id))
    between = (before + timedelta(hours=1)).isoformat()

    assert found(api, "refund") == ["Refund, two", "Refund, one"]
    assert found(api, "refund", contact_id=eve) == ["Refund, two"]
    assert found(api, "refund", conversation_id=first.conversation_id) == ["Refund, one"]
    assert found(api, "refund", conversation_id=second.conversation_id, contact_id=contact_id) == []
    assert found(api, "refund", since=between) == ["Refund, two"]
    assert found(api, "refund", until=between) == ["Refund, one"]
    assert found(api, "refund", contact_id=theirs) == []
    assert found(others, "refund") == ["Refund, theirs"]
    for name in ("contact_id", "conversation_id"):
        assert found(api, "refund", **{name: "x' | 'y"}) == []


def test_without_words_the_filters_narrow_the_list(api: Api, contact_id: str, channel_id: str) -> None:
    eve = api.contact(external_id="eve")["id"]
    conversation_id = receive(api.workspace_id, contact_id, channel_id, "one").conversation_id
    receive(api.workspace_id, eve, channel_id, "two")

    def texts(query: str) -> list[str]:
        return [each["text"] for each in api.get(f"messages?{query}").json["data"]]

    assert (texts(""), texts(f"contact_id={eve}")) == (["two", "one"], ["two"])
    assert texts(f"conversation_id={conversation_id}") == ["one"]
    assert texts("since=2999-01-01T00:00:00Z") == texts("until=2001-01-01T00:00:00Z") == []
    assert texts("since=1971-01-01T00:00:00Z&until=9998-01-01T00:00:00Z") == ["two", "one"]


@pytest.mark.usefixtures("looked_at")
def test_pages_follow_each_other_over_times(api: Api, contact_id: str, channel_id: str) -> None:
    message = receive(api.workspace_id, contact_id, channel_id, "Hello 0")
    # Four days between each two.
    earlier = [ids.bound("msg", datetime.now(UTC) - timedelta(days=4 * number)) for number in range(1, 41)]
    rows(
        """
        INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, status, author, text)
        SELECT moved.id, workspace_id, conversation_id, contact_id, 'in', 'received', '{}', 'Hello ' || number
        FROM messages, unnest(%s::text[]) WITH ORDINALITY AS moved(id, number) WHERE messages.id = %s RETURNING 1
        """,
        (earlier, message.id),
    )
    pages, cursor = [], ""
    while cursor is not None:
        page = api.get(f"messages?q=hello&limit=7{cursor}").json
        pages.append([each["text"] for each in page["data"]])
        cursor = page["meta"]["nextCursor"] and f"&cursor={page['meta']['nextCursor']}"

    assert [len(each) for each in pages] == [7, 7, 7, 7, 7, 6]
    assert [text for page in pages for text in page] == [f"Hello {number}" for number in range(41)]
    assert found(api, "hello 3", limit=3) == ["Hello 3", "Hello 30", "Hello 31"]


def test_erased_edited_and_deleted_texts_are_not_found(api: Api, contact_id: str, channel_id: str) -> None:
    talk = receive(api.workspace_id, contact_id, channel_id, "Secret one").conversation_id
    message_id = schedule(api, talk, "Secret two")
    assert found(api, "secret") == ["Secret two", "Secret one"]

    api.done(api.patch(f"messages/{message_id}", {"text": "Open two"}))
    assert (found(api, "secret"), found(api, "open")) == (["Secret one"], ["Open two"])
    api.done(api.delete(f"messages/{message_id}"))
    api.done(api.delete(f"contacts/{contact_id}"))

    assert (found(api, "secret"), found(api, "open")) == ([], [])


@pytest.mark.usefixtures("looked_at")
def test_a_merge_moves_what_is_found(api: Api, contact_id: str, channel_id: str) -> None:
    talk = receive(api.workspace_id, contact_id, channel_id, "Refund, please").conversation_id
    kept = api.contact(external_id="kept")["id"]
    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": contact_id}))

    assert found(api, "refund", contact_id=kept) == found(api, "refund", conversation_id=talk) == ["Refund, please"]
    assert found(api, "refund", contact_id=contact_id) == []


@pytest.mark.usefixtures("looked_at")
def test_while_messages_follow_their_conversation_they_are_found_in_it(
    api: Api, contact_id: str, channel_id: str
) -> None:
    talk = receive(api.workspace_id, contact_id, channel_id, "Refund, please").conversation_id
    rows("UPDATE conversations SET contact_id = 'con_1'")

    assert found(api, "refund", conversation_id=talk) == ["Refund, please"]


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("q=" + "x" * 201, "/q"),
        ("q=x&scheduled=true", "/q"),
    ],
)
def test_what_is_no_search_is_refused(api: Api, query: str, pointer: str) -> None:
    refused = api.get(f"messages?{query}")

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize(
    "text", ["🙂" * 5_000, "字" * 5_000, "x" * 9_000, "\x01abc", "a\x01b ж", "\n\t\r", "ж" * 5_000]
)
def test_any_text_can_be_stored_and_sought(api: Api, contact_id: str, channel_id: str, text: str) -> None:
    receive(api.workspace_id, contact_id, channel_id, text)

    assert api.get(f"messages?q={quote(text[:20])}").status_code == 200
    assert one("SELECT text FROM messages") == text
