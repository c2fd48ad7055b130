"""Visitors of web chats: their tokens, and which pages may show a chat."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain.channels import chats, media, visitors
from app.domain.receiving import signed_visitors
from app.errors import Invalid, NotFound
from app.lib import ids
from app.models.channels import Channel
from tests.cast import Api
from tests.chatting import KEY, make_chat


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_chat(api.workspace_id)


def test_a_visitor_is_found_by_its_token_in_its_channel(channel: Channel) -> None:
    visitor, token = visitors.issue(channel, KEY)

    assert visitors.authenticate(token) == visitor
    assert (visitor.workspace_id, visitor.channel_id) == (channel.workspace_id, channel.id)
    assert (visitor.contact_id, visitor.user_id, visitor.peer) == (None, None, visitor.id)


def test_the_same_key_has_the_same_visitor_and_token(channel: Channel) -> None:
    assert visitors.issue(channel, KEY) == visitors.issue(channel, KEY)


def test_the_same_key_has_another_visitor_in_another_channel(channel: Channel) -> None:
    other = make_chat(channel.workspace_id)

    (first, first_token), (second, second_token) = visitors.issue(channel, KEY), visitors.issue(other, KEY)

    assert first.id != second.id
    assert first_token != second_token
    assert visitors.authenticate(second_token) == second


def test_neither_a_token_nor_a_key_is_stored(channel: Channel) -> None:
    _, token = visitors.issue(channel, KEY)

    stored = str(rows("SELECT visitors::text, encode(token_hash, 'escape') FROM visitors"))
    assert token not in stored
    assert KEY not in stored


@pytest.mark.parametrize("key", ["", "short", "x" * 65, "ü" * 40, "a b" * 12])
def test_a_key_that_could_be_guessed_is_refused(channel: Channel, key: str) -> None:
    with pytest.raises(Invalid):
        visitors.issue(channel, key)


@pytest.mark.parametrize("token", ["", "bhv_", "bhv_" + "0" * 64, "bhp_x", "\0", "bhv_" + "é" * 64])
def test_anything_else_is_nobodys_token(channel: Channel, token: str) -> None:
    assert visitors.authenticate(token) is None


def test_a_token_ends_with_its_channel(channel: Channel) -> None:
    _, token = visitors.issue(channel, KEY)
    rows("UPDATE channels SET deleted_at = now() WHERE id = %s", (channel.id,))

    assert visitors.authenticate(token) is None
    with pytest.raises(NotFound):
        visitors.find_channel(channel.id)


def test_only_web_chats_are_found(channel: Channel) -> None:
    rows("UPDATE channels SET kind = 'telegram' WHERE id = %s", (channel.id,))

    for wanted in (channel.id, ids.new("chn"), "chn_x", "\0"):
        with pytest.raises(NotFound):
            visitors.find_channel(wanted)


def test_a_visitor_has_the_contact_of_its_identity(channel: Channel, api: Api) -> None:
    visitor, token = visitors.issue(channel, KEY)
    contact_id = api.contact(external_id="7")["id"]
    rows(
        "INSERT INTO identities (id, workspace_id, contact_id, channel_kind, external_id, address)"
        " VALUES (%s, %s, %s, 'web_chat', %s, %s)",
        (ids.new("idn"), api.workspace_id, contact_id, visitor.id, f"web_chat:{visitor.id}"),
    )

    found = visitors.authenticate(token)

    assert found is not None
    assert found.contact_id == contact_id


def test_pages_of_the_allowed_origins_and_our_own_may_show_the_chat(client: object) -> None:
    allowed = ["https://shop.example"]

    assert visitors.is_allowed(allowed, "https://shop.example")
    assert visitors.is_allowed([], "https://bellhop.test")
    for origin in (None, "", "null", "http://shop.example", "https://shop.example:444", "https://shop.example.evil"):
        assert not visitors.is_allowed(allowed, origin)


def test_a_visitor_who_uploaded_a_file_and_never_wrote_is_deleted_after_a_day(channel: Channel) -> None:
    visitor, token = visitors.issue(channel, KEY)
    upload = media.store(channel.workspace_id, "a.txt", b"Hello", visitor_id=visitor.id)
    assert visitors.delete_expired() == 0

    expire()
    assert visitors.delete_expired() == 1
    assert visitors.authenticate(token) == visitor  # until its file has expired, too

    rows("UPDATE uploads SET expires_at = now() - interval '1 second'")
    expire()
    assert (media.delete_expired(), visitors.delete_expired(), visitors.delete_expired()) == (1, 1, 0)
    assert visitors.authenticate(token) is None
    assert not media.path_of(upload).exists()


def test_a_visitor_whose_message_is_not_processed_yet_stays(channel: Channel) -> None:
    visitor, token = visitors.issue(channel, KEY)
    chats.say(channel, visitor, "m1", "Hello")
    expire()

    assert visitors.delete_expired() == 1
    assert visitors.authenticate(token) == visitor


def test_a_visitor_with_a_contact_stays_and_is_not_looked_at_again(channel: Channel) -> None:
    visitor, token = visitors.issue(channel, KEY)
    signed_visitors.join(visitor, "user-7", "trace-1")
    expire()

    assert (visitors.delete_expired(), visitors.delete_expired()) == (1, 0)
    assert visitors.authenticate(token) is not None


def test_expired_visitors_are_deleted_some_at_a_time(channel: Channel) -> None:
    for number in range(3):
        visitors.issue(channel, f"{number}" * 32)
    expire()

    assert [visitors.delete_expired(2) for _ in range(3)] == [2, 1, 0]
    assert rows("SELECT count(*) FROM visitors") == [(0,)]


def test_the_contacts_of_visitors_are_found_by_index(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(
        "INSERT INTO identities (id, workspace_id, contact_id, channel_kind, external_id, address)"
        " SELECT 'idn_' || number, %s, 'con_1', 'web_chat', number, 'web_chat:' || number"
        " FROM generate_series(1, 2000) AS number",
        (channel.workspace_id,),
    )
    rows("ANALYZE identities")
    asked: list[tuple[str, Any]] = []
    monkeypatch.setattr(visitors, "rows", lambda *query: asked.append(query) or rows(*query))

    visitors.issue(channel, KEY)
    visitors.delete_expired()

    plans = [line.strip() for sql, parameters in asked for (line,) in rows(f"EXPLAIN {sql}", parameters)]
    found = [line for line in plans if "address =" in line]
    assert len(found) == 2
    assert all(line.startswith("Index Cond: ((workspace_id") for line in found)


def expire() -> None:
    rows("UPDATE visitors SET expires_at = now() - interval '1 second'")
