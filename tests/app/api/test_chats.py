"""What the script of a web chat asks for: messages, files, who the visitor is; and who may ask."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import bells, realtime
from app.channels.inbound import Receipt, Received
from app.config import settings
from app.database import rows
from app.domain.channels import arrivals, channels, visitors
from app.domain.receiving import arrival_processing
from app.lib import ids, json
from app.models.arrivals import Arrival
from app.models.channels import Channel
from tests.bounding import set_bound
from tests.cast import Api
from tests.chatting import KEY, SHOP, make_chat, signed
from tests.talks import add_note

EVIL = "https://evil.example"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


class Page:
    """A page of a shop, with the session that its script keeps."""

    def __init__(self, client: FlaskClient, channel: Channel, origin: str | None = SHOP) -> None:
        self.client = client
        self.channel = channel
        self.headers = {"Origin": origin} if origin else {}
        self.token: str | None = None

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> TestResponse:
        headers = self.headers | options.pop("headers", {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            options["json"] = body
        return self.client.open(f"/chat/{self.channel.id}/{path}", method=method, headers=headers, **options)

    def say(self, text: str | None = "Hello", id: str = "m1", **fields: Any) -> TestResponse:
        given = {} if self.token else {"key": KEY}
        response = self.ask("POST", "messages", {"id": id, "text": text} | given | fields)
        if response.status_code == 202 and "token" in response.json:
            self.token = response.json["token"]
        return response

    def messages(self) -> list[dict[str, Any]]:
        return list(self.ask("GET", "messages").json["messages"])

    @property
    def visitor(self) -> visitors.Visitor:
        found = visitors.authenticate(self.token or "")
        assert found is not None
        return found


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_chat(api.workspace_id)


@pytest.fixture
def page(client: FlaskClient, channel: Channel) -> Page:
    return Page(client, channel)


def stored() -> list[Any]:
    waiting = Arrival.select().where(Arrival.due_at.is_null(False)).order_by(Arrival.position)
    return [arrivals.read(each) for each in waiting]


def is_nothing_stored() -> bool:
    return rows("SELECT (SELECT count(*) FROM visitors), (SELECT count(*) FROM arrivals)") == [(0, 0)]


# Messages


def test_the_first_message_makes_the_visitor_and_answers_with_its_token(page: Page) -> None:
    response = page.say("Do you ship to Italy?", locale="it-IT")

    assert response.status_code == 202
    assert response.json == {"id": "m1", "token": page.token}
    [received] = stored()
    visitor = page.visitor
    assert isinstance(received, Received)
    assert (received.sender, received.peer) == (visitor.id, visitor.id)
    assert (received.text, received.locale, received.key) == ("Do you ship to Italy?", "it-IT", f"{visitor.id}:m1")


def test_a_repeated_first_message_is_one_message_of_one_visitor(page: Page, client: FlaskClient) -> None:
    again = Page(client, page.channel)

    assert page.say().json == again.say().json

    assert len(stored()) == 1
    assert rows("SELECT count(*) FROM visitors") == [(1,)]


def test_a_repeated_message_is_one_message(page: Page) -> None:
    for _ in range(3):
        assert page.say("Hello", "m1").status_code == 202
    page.say("Anyone there?", "m2")

    assert [each.text for each in stored()] == ["Hello", "Anyone there?"]


def test_the_same_id_of_another_visitor_is_another_message(page: Page, client: FlaskClient) -> None:
    page.say("Mine", "m1")
    Page(client, page.channel).say("Theirs", "m1", key="z" * 32)

    assert [each.text for each in stored()] == ["Mine", "Theirs"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"text": "x"}, "/id"),
        ({"id": "a b", "text": "x", "key": KEY}, "/id"),
        ({"id": "m1", "text": "", "key": KEY}, "/text"),
        ({"id": "m1", "text": "x" * 4097, "key": KEY}, "/text"),
        ({"id": "m1", "text": "a\0b", "key": KEY}, "/text"),
        ({"id": "m1", "text": "x"}, "/key"),
        ({"id": "m1", "text": "x", "key": "guessable"}, "/key"),
        ({"id": "m1", "text": "x", "key": KEY, "name": "Eve"}, "/name"),
        ({"id": "m1", "text": "x", "key": KEY, "uploads": ["upl_x"]}, "/uploads"),
        ({"id": "m1", "text": "x", "key": KEY, "locale": "<script>"}, "/locale"),
    ],
)
def test_a_message_that_is_not_one_is_refused(page: Page, body: dict[str, Any], pointer: str) -> None:
    response = page.ask("POST", "messages", body)

    assert response.status_code == 422
    assert [error["pointer"] for error in response.json["errors"]] == [pointer]
    assert stored() == []


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 422), (b"x" * 70_000, 413)])
def test_a_body_that_is_no_small_object_is_refused(page: Page, body: bytes, status: int) -> None:
    assert page.ask("POST", "messages", data=body).status_code == status
    assert is_nothing_stored()


def test_the_longest_text_may_be_escaped(page: Page) -> None:
    escaped = r"\ud83c\udf37" * 4_096
    body = f'{{"id": "m1", "text": "{escaped}", "key": "{KEY}"}}'

    assert page.ask("POST", "messages", data=body.encode()).status_code == 202
    assert [each.text for each in stored()] == ["🌷" * 4_096]


def test_nothing_is_stored_before_the_first_message(page: Page) -> None:
    page.ask("GET", "../" + f"{page.channel.id}.js")
    page.ask("OPTIONS", "messages")
    page.ask("GET", "messages")
    page.ask("POST", "identify", {"user": signed("7"), "key": KEY})

    assert is_nothing_stored()
    assert rows("SELECT count(*) FROM contacts") == [(0,)]


def test_no_answer_sets_a_cookie(page: Page) -> None:
    for response in (page.say(), page.ask("GET", "messages"), page.ask("POST", "identify", {"user": signed("7")})):
        assert "Set-Cookie" not in response.headers
        assert "Access-Control-Allow-Credentials" not in response.headers


def test_a_visitor_sees_its_own_conversation_and_no_others(page: Page, client: FlaskClient, api: Api) -> None:
    other = Page(client, page.channel)
    page.say("Mine", "m1")
    other.say("Theirs", "m1", key="z" * 32)
    for each in (page, other):
        converse(api, each)

    assert [(each["direction"], each["text"], each["client_id"]) for each in page.messages()] == [
        ("in", "Mine", "m1"),
        ("out", "Answer to Mine", None),
    ]
    assert [each["text"] for each in other.messages()] == ["Theirs", "Answer to Theirs"]


def test_what_was_not_sent_is_not_shown(page: Page, api: Api) -> None:
    page.say("Mine", "m1")
    converse(api, page, status="failed")

    assert [each["text"] for each in page.messages()] == ["Mine"]


def test_notes_are_not_shown(page: Page, api: Api) -> None:
    page.say("Mine", "m1")
    add_note(api, converse(api, page), "Is rude")

    assert [each["text"] for each in page.messages()] == ["Mine", "Answer to Mine"]


def test_older_messages_are_asked_for_by_the_oldest_that_is_shown(page: Page, api: Api) -> None:
    page.say("0", "m0")
    conversation_id = converse(api, page)
    for number in range(1, 60):
        make_message(api, conversation_id, str(number))

    shown = page.messages()
    before = page.ask("GET", f"messages?before={shown[0]['id']}").json["messages"]

    assert [each["text"] for each in before + shown] == ["0", "Answer to 0", *map(str, range(1, 60))]


def test_how_many_of_the_own_messages_were_not_read_is_counted(page: Page, client: FlaskClient, api: Api) -> None:
    page.say("Hello", "m1")
    assert page.ask("GET", "messages").json["unread"] == 0
    conversation_id = converse(api, page)
    rows("UPDATE conversations SET unread = 3 WHERE id = %s", (conversation_id,))
    other = Page(client, page.channel)
    other.say("Theirs", "m1", key="z" * 32)

    assert page.ask("GET", "messages").json["unread"] == 3
    assert other.ask("GET", "messages").json["unread"] == 0


def test_a_message_of_somebody_else_is_like_one_that_there_is_not(page: Page, client: FlaskClient, api: Api) -> None:
    other = Page(client, page.channel)
    page.say("Mine", "m1")
    other.say("Theirs", "m1", key="z" * 32)
    for each in (page, other):
        converse(api, each)
    theirs = other.messages()[-1]["id"]

    answers = [page.ask("GET", f"messages?before={each}").json["messages"] for each in (theirs, ids.new("msg"))]

    assert answers[0] == answers[1] == []


def test_reading_is_a_receipt_for_what_was_not_read_yet(page: Page, api: Api) -> None:
    page.say("Hello", "m1")
    converse(api, page)
    last = page.messages()[-1]["id"]

    assert page.ask("POST", "read", {"message_id": last}).status_code == 204

    [receipt] = [each for each in stored() if isinstance(each, Receipt)]
    assert isinstance(receipt, Receipt)
    assert (receipt.message_id, receipt.status, receipt.recipient) == (last, "read", page.visitor.id)
    process(page)
    assert page.messages()[-1]["status"] == "read"
    page.ask("POST", "read", {"message_id": last})
    assert rows("SELECT count(*) FROM arrivals") == [(2,)]


def test_the_members_see_that_the_visitor_is_typing(page: Page, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[realtime.Sign] = []
    monkeypatch.setattr(realtime, "show", shown.append)
    page.say("Hello", "m1")
    assert page.ask("POST", "typing", {}).status_code == 204
    conversation_id = converse(api, page)

    assert page.ask("POST", "typing", {}).status_code == 204

    [sign] = shown
    assert (sign.kind, sign.workspace_id, sign.peer) == ("typing", api.workspace_id, None)
    author = {"type": "contact", "id": page.visitor.contact_id}
    assert sign.data == {"conversation_id": conversation_id, "author": author}


# Buttons


def test_a_visitor_presses_a_button_and_says_its_label(page: Page, api: Api) -> None:
    page.say("Hello", "m1")
    conversation_id = converse(api, page)
    make_message(api, conversation_id, "Sure?", buttons=[{"id": "yes", "label": "Yes, please"}])
    assert page.messages()[-1]["buttons"] == [{"id": "yes", "label": "Yes, please"}]

    for _ in range(2):
        assert page.say("What I made up", "m2", button_id="yes").status_code == 202
    process(page)

    assert [each["button_id"] for each in page.messages()] == [None, None, None, "yes"]
    pressed = page.messages()[-1]
    assert (pressed["text"], pressed["client_id"], pressed["buttons"]) == ("Yes, please", "m2", [])
    [(message_id,)] = rows("SELECT id FROM messages WHERE button_id IS NOT NULL")
    assert api.get(f"messages/{message_id}").json["data"]["button_id"] == "yes"


def test_of_two_buttons_with_one_id_the_later_is_meant(page: Page, api: Api) -> None:
    page.say("Hello", "m1")
    conversation_id = converse(api, page)
    for label in ("Red", "Blue"):
        make_message(api, conversation_id, "Which one?", buttons=[{"id": "first", "label": label}])

    page.say(None, "m2", button_id="first")

    assert stored()[-1].text == "Blue"


def test_only_a_button_that_the_visitor_was_offered_can_be_pressed(
    page: Page, client: FlaskClient, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.domain.channels.chats.MOST_OFFERING", 2)
    other = Page(client, page.channel)
    for each, key in ((page, KEY), (other, "z" * 32)):
        each.say("Hello", "m1", key=key)
    own, theirs = converse(api, page), converse(api, other)
    make_message(api, theirs, "Sure?", buttons=[{"id": "theirs", "label": "Yes"}])
    make_message(api, own, "Sure?", buttons=[{"id": "old", "label": "Yes"}])
    make_message(api, own, "Sure?", buttons=[{"id": "new", "label": "Yes"}])
    make_message(api, own, "Anything else?")
    make_message(api, own, "Sure?", "failed", buttons=[{"id": "unsent", "label": "Yes"}])

    for button_id in ("theirs", "old", "unsent", "yes", "x" * 65, 7):
        response = page.say("Yes", "m2", button_id=button_id)
        assert response.status_code == 422
        assert [error["pointer"] for error in response.json["errors"]] == ["/button_id"]
    assert page.say(None, "m2", button_id="new").status_code == 202


# Files


def test_a_file_is_uploaded_and_sent_with_a_message(page: Page) -> None:
    page.say()

    response = page.ask("POST", "uploads", data=PNG, headers={"X-File-Name": "F%C3%BC%C3%9Fe.png"})

    assert response.status_code == 201
    assert (response.json["name"], response.json["content_type"]) == ("Füße.png", "image/png")
    assert page.say(None, "m2", uploads=[response.json["id"]]).status_code == 202
    process(page)
    [attachment] = page.messages()[-1]["attachments"]
    assert (attachment["id"], attachment["name"], attachment["bytes"]) == (response.json["id"], "Füße.png", len(PNG))
    assert page.client.get(attachment["address"].removeprefix("https://bellhop.test")).data == PNG


def test_a_file_of_another_visitor_cannot_be_sent(page: Page, client: FlaskClient) -> None:
    page.say()
    mine = page.ask("POST", "uploads", data=PNG).json["id"]
    other = Page(client, page.channel)
    other.say(key="z" * 32)

    assert other.say(None, "m2", uploads=[mine]).status_code == 422


def test_the_first_message_may_be_a_file(page: Page) -> None:
    response = page.ask("POST", "uploads", data=PNG, headers={"X-Visitor-Key": KEY})

    assert response.status_code == 201
    page.token = response.json["token"]
    assert page.say(None, uploads=[response.json["id"]]).status_code == 202
    process(page)
    assert [each["id"] for each in page.messages()[-1]["attachments"]] == [response.json["id"]]
    assert rows("SELECT count(*) FROM visitors") == [(1,)]


@pytest.mark.parametrize("headers", [{}, {"X-Visitor-Key": "short"}])
def test_a_stranger_without_a_key_uploads_nothing(page: Page, headers: dict[str, str]) -> None:
    assert page.ask("POST", "uploads", data=PNG, headers=headers).status_code == 422
    assert rows("SELECT (SELECT count(*) FROM uploads), (SELECT count(*) FROM visitors)") == [(0, 0)]


def test_a_visitor_cannot_hoard_files(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    page.say()
    monkeypatch.setattr("app.domain.channels.chats.MOST_UPLOADS", 2)

    statuses = [page.ask("POST", "uploads", data=PNG).status_code for _ in range(3)]

    assert statuses == [201, 201, 409]


# Who may ask


@pytest.mark.parametrize("origin", [EVIL, "null", "http://shop.example", "https://shop.example.evil.example", None])
def test_a_page_of_another_origin_is_refused_and_reads_nothing(page: Page, client: FlaskClient, origin: str) -> None:
    page.say()
    hostile = Page(client, page.channel, origin)
    hostile.token = page.token

    for response in (
        hostile.say("Hello", "m9"),
        hostile.ask("GET", "messages"),
        hostile.ask("POST", "uploads", data=PNG),
        hostile.ask("POST", "identify", {"user": signed("7")}),
        hostile.ask("OPTIONS", "messages", headers={"Access-Control-Request-Method": "POST"}),
    ):
        assert response.status_code == 403
        assert "Access-Control-Allow-Origin" not in response.headers
        assert response.headers["Vary"] == "Origin"
    assert len(stored()) == 1


def test_a_browser_may_send_what_the_script_sends(page: Page) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    for path in ("messages", "uploads", "identify", "read", "typing"):
        response = page.ask("OPTIONS", path, headers=asked)
        assert response.status_code == 204
        assert response.headers["Access-Control-Allow-Origin"] == SHOP
        assert "authorization" in response.headers["Access-Control-Allow-Headers"]
        assert "POST" in response.headers["Access-Control-Allow-Methods"]


def test_a_refusal_can_be_read_by_the_page_that_is_allowed(page: Page) -> None:
    page.token = "bhv_" + "0" * 64

    response = page.ask("GET", "messages")

    assert response.status_code == 401
    assert response.headers["Access-Control-Allow-Origin"] == SHOP


def test_a_page_of_our_own_needs_no_origin(page: Page, client: FlaskClient) -> None:
    own = Page(client, page.channel, None)
    own.headers = {"Sec-Fetch-Site": "same-origin"}

    assert own.say().status_code == 202


def test_the_token_of_another_channel_is_refused(page: Page, client: FlaskClient, api: Api, others: Api) -> None:
    page.say()
    for other in (make_chat(api.workspace_id), make_chat(others.workspace_id)):
        stranger = Page(client, other)
        stranger.token = page.token
        assert stranger.say("Hello", "m2").status_code == 401
        assert stranger.ask("GET", "messages").status_code == 401
        assert stranger.ask("POST", "uploads", data=PNG).status_code == 401
    assert len(stored()) == 1


def test_a_token_counts_in_its_header_alone(page: Page, client: FlaskClient) -> None:
    page.say()
    other = Page(client, page.channel)

    assert other.ask("GET", f"messages?token={page.token}").status_code == 401
    assert other.ask("GET", "messages", headers={"Cookie": f"token={page.token}"}).status_code == 401


def test_a_chat_that_is_not_there_is_not_found(page: Page, client: FlaskClient) -> None:
    rows("UPDATE channels SET deleted_at = now() WHERE id = %s", (page.channel.id,))

    assert page.say().status_code == 404
    assert client.get(f"/chat/{ids.new('chn')}/messages", headers=page.headers).status_code == 404
    assert client.get("/chat/x/messages", headers=page.headers).status_code == 404


@pytest.mark.parametrize(
    ("limit", "most"),
    [("CHAT_REQUESTS_PER_VISITOR", 3), ("CHAT_REQUESTS_PER_ADDRESS", 3), ("NEW_VISITORS_PER_ADDRESS", 0)],
)
def test_there_are_limits(page: Page, monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    set_bound(monkeypatch, limit, most or 1)
    refused = None
    for number in range(6):
        if not most:
            page.token = None
        response = page.say("Hello", f"m{number}", **({} if most else {"key": str(number) * 32}))
        refused = response if response.status_code == 429 else refused

    assert refused is not None
    assert refused.headers["Retry-After"]
    assert refused.headers["Access-Control-Allow-Origin"] == SHOP


def test_behind_a_trusted_proxy_addresses_are_those_of_visitors(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "NEW_VISITORS_PER_ADDRESS", 1)
    monkeypatch.setenv("TRUSTED_PROXIES", "1")
    settings.cache_clear()
    statuses = []
    for number, passed in enumerate(("192.0.2.1", "192.0.2.2", "198.51.100.1, 192.0.2.2")):
        page.token = None
        page.headers["X-Forwarded-For"] = passed
        statuses.append(page.say(key=str(number) * 32).status_code)
    monkeypatch.undo()
    settings.cache_clear()

    assert statuses == [202, 202, 429]


def test_messages_are_taken_while_redis_is_away(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise redis.ConnectionError

    monkeypatch.setattr(bells.flags(), "execute_command", fail)

    assert page.say().status_code == 202
    assert len(stored()) == 1


def test_visitors_are_counted_while_redis_is_away(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "NEW_VISITORS_PER_ADDRESS", 3)

    def fail(*_: object, **__: object) -> None:
        raise redis.ConnectionError

    monkeypatch.setattr(bells.flags(), "execute_command", fail)
    page.client.environ_base["REMOTE_ADDR"] = "192.0.2.77"
    answers = []
    for number in range(4):
        page.token = None
        answers.append(page.say(key=str(number) * 32))
    page.client.environ_base["REMOTE_ADDR"] = "127.0.0.1"

    assert [answer.status_code for answer in answers] == [202, 202, 202, 429]
    assert int(answers[3].headers["Retry-After"]) <= 60


# Who the visitor is


def test_a_signature_that_is_not_the_channels_is_refused(page: Page) -> None:
    page.say()
    for user in (signed("7", "another secret"), {"id": "8", "signature": signed("7")["signature"]}):
        assert page.ask("POST", "identify", {"user": user}).status_code == 403
        assert page.say("Hello", "m2", user=user).status_code == 403
    assert page.visitor.user_id is None
    assert len(stored()) == 1


def test_no_signature_counts_while_the_channel_has_no_secret(page: Page, client: FlaskClient) -> None:
    rows("UPDATE channels SET credentials = %s WHERE id = %s", (channels.sealed({}), page.channel.id))

    assert Page(client, page.channel).say(user=signed("7", "")).status_code == 403


def test_a_user_who_writes_is_the_contact_of_that_external_id(page: Page, api: Api) -> None:
    contact_id = api.contact(external_id="7")["id"]

    page.say(user=signed("7"))

    assert (page.visitor.contact_id, page.visitor.user_id) == (contact_id, "7")


def test_a_user_without_a_contact_gets_one(page: Page, api: Api) -> None:
    page.say(user=signed("7"))

    assert page.visitor.contact_id is not None
    assert api.show_contact(page.visitor.contact_id)["external_id"] == "7"


def test_a_visitor_who_signs_in_gives_its_contact_the_external_id(page: Page, api: Api) -> None:
    page.say()
    converse(api, page)
    before = page.visitor.contact_id

    assert page.ask("POST", "identify", {"user": signed("7")}).json == {"token": None}

    assert page.visitor.contact_id == before
    assert api.show_contact(str(before))["external_id"] == "7"


def test_a_visitor_who_signs_in_becomes_the_contact_that_there_is(page: Page, api: Api) -> None:
    contact_id = api.contact(external_id="7")["id"]
    page.say()
    conversation_id = converse(api, page)
    before = page.visitor.contact_id
    assert before != contact_id

    assert page.ask("POST", "identify", {"user": signed("7")}).status_code == 200
    api.apply()

    assert page.visitor.contact_id == contact_id
    assert api.get(f"contacts/{before}").status_code == 404
    held = "SELECT contact_id FROM conversations WHERE id = %s UNION SELECT contact_id FROM messages"
    assert rows(held, (conversation_id,)) == [(contact_id,)]
    assert [each["text"] for each in page.messages()] == ["Hello", "Answer to Hello"]


def test_a_visitor_who_signs_in_while_its_message_waits_is_that_contact(page: Page, api: Api) -> None:
    contact_id = api.contact(external_id="7")["id"]
    page.say()
    page.ask("POST", "identify", {"user": signed("7")})

    process(page)

    assert rows("SELECT contact_id FROM messages") == [(contact_id,)]
    assert [each["text"] for each in page.messages()] == ["Hello"]


def test_another_user_in_the_same_browser_needs_another_session(page: Page, client: FlaskClient) -> None:
    page.say(user=signed("7"))

    assert page.ask("POST", "identify", {"user": signed("8")}).status_code == 409
    assert page.say("Hello", "m2", user=signed("8")).status_code == 409
    other = Page(client, page.channel)
    assert other.say("Hello", user=signed("8"), key="z" * 32).status_code == 202
    assert other.visitor.contact_id != page.visitor.contact_id


def test_a_user_sees_the_same_conversation_in_another_browser(page: Page, client: FlaskClient, api: Api) -> None:
    page.say("Hello", user=signed("7"))
    converse(api, page)
    other = Page(client, page.channel)

    other.token = other.ask("POST", "identify", {"user": signed("7"), "key": "z" * 32}).json["token"]
    other.say("From here", "m2")
    process(other)

    for each in (page, other):
        assert [shown["text"] for shown in each.messages()] == ["Hello", "Answer to Hello", "From here"]
    assert rows("SELECT count(*) FROM conversations") == [(1,)]
    assert other.visitor.id != page.visitor.id
    assert other.visitor.contact_id == page.visitor.contact_id


def converse(api: Api, page: Page, status: str = "sent") -> str:
    """Processes what the visitor has sent, as the worker does, and answers it; returns the conversation."""
    process(page)
    [(conversation_id, text)] = rows(
        "SELECT conversation_id, text FROM messages WHERE channel_id = %s AND provider_id LIKE %s",
        (page.channel.id, f"{page.visitor.id}:%"),
    )
    make_message(api, conversation_id, f"Answer to {text}", status)
    return str(conversation_id)


def process(page: Page) -> None:
    arrival_processing.work(arrivals.sender_key(page.channel.id, page.visitor.id))


def make_message(api: Api, conversation_id: str, text: str, status: str = "sent", buttons: Any = None) -> None:
    rows(
        "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status,"
        " buttons, author, created_at)"
        " SELECT %s, %s, id, contact_id, channel_id, 'out', %s, %s, %s, '{}', clock_timestamp()"
        " FROM conversations WHERE id = %s",
        (
            *(ids.new("msg"), api.workspace_id, text, status),
            *(buttons and json.dumps(buttons).decode(), conversation_id),
        ),
    )


@pytest.mark.parametrize("whose", ["PER_NEW_VISITOR", "PER_ADDRESS", "PER_CHANNEL", "BY_CONTACTS"])
def test_files_have_an_allowance_of_bytes(page: Page, monkeypatch: pytest.MonkeyPatch, whose: str) -> None:
    set_bound(monkeypatch, f"STORED_{whose}", 11)
    headers = {**page.headers, "X-Visitor-Key": KEY}
    first = page.client.post(f"/chat/{page.channel.id}/uploads", data=b"0123456789", headers=headers)
    second = page.client.post(f"/chat/{page.channel.id}/uploads", data=b"01", headers=headers)

    assert (first.status_code, second.status_code) == (201, 429)
    assert int(second.headers["Retry-After"]) > 3_000
    assert "Too many large files" in second.text


def test_files_are_refused_while_the_disk_is_nearly_full(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "LEAST_FREE", 2**60)

    answer = page.client.post(
        f"/chat/{page.channel.id}/uploads", data=b"0123456789", headers={**page.headers, "X-Visitor-Key": KEY}
    )

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert rows("SELECT id FROM uploads") == []


def test_chats_from_one_ipv6_network_begin_as_from_one_address(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "NEW_VISITORS_PER_ADDRESS", 3)
    statuses = []
    for number in range(5):
        page.token = None
        page.client.environ_base["REMOTE_ADDR"] = f"2001:db8:1:2::{number:x}"
        statuses.append(page.say(key=str(number) * 32).status_code)
    page.client.environ_base["REMOTE_ADDR"] = "127.0.0.1"

    assert statuses == [202, 202, 202, 429, 429]


def test_so_many_chats_of_a_channel_begin_in_a_minute_as_its_settings_say(page: Page, api: Api) -> None:
    path = f"channels/{page.channel.id}"
    refused = api.patch(path, {"settings": {"new_visitors_per_minute": 0}})
    api.done(api.patch(path, {"settings": {"new_visitors_per_minute": 2}}))
    statuses = []
    for number in range(3):
        page.token = None
        statuses.append(page.say(key=str(number) * 32).status_code)

    assert refused.status_code == 422
    assert statuses == [202, 202, 429]
    assert api.get(path).json["data"]["settings"]["origins"] == page.channel.settings["origins"]
