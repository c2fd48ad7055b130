"""How many streams there may be: of an actor, an address, a workspace and the process; and how fast they are opened."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from flask import Flask

from app.database import rows
from app.domain.channels import visitors
from app.domain.people import notifications
from app.live import listeners, server
from tests import pages
from tests.app.live.conftest import Running, cookie
from tests.bounding import set_bound
from tests.cast import Api, until
from tests.chatting import make_chat
from tests.listening import Ear

Headers = dict[str, str]
USAGE = {"meter": "contacts", "used": 81, "percent": 81, "included": 100}


@pytest.fixture
def member(app: Flask, api: Api) -> Headers:
    return {"Cookie": cookie(pages.member(app, api.workspace_id))}


@pytest.fixture
def opened(realtime: Running) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def open_ear(opened: ExitStack, realtime: Running, headers: Headers, path: str = "/live/workspace") -> Ear:
    ear = Ear(realtime.port, path, headers).open()
    opened.callback(ear.close)
    return ear


def refusal(ear: Ear) -> tuple[int, str, bool]:
    return ear.status, ear.body()["type"].rpartition("/")[2], int(ear.head["retry-after"]) > 0


def test_beyond_its_streams_an_actors_oldest_ends_and_comes_back_later(
    monkeypatch: pytest.MonkeyPatch, api: Api, realtime: Running, member: Headers, opened: ExitStack
) -> None:
    set_bound(monkeypatch, "LIVE_STREAMS_PER_ACTOR", 2)
    first, *others = [open_ear(opened, realtime, member).until_placed() for _ in range(3)]

    until(lambda: first.listen().is_over)
    assert b"retry: 60000" in first.raw
    notifications.note(api.workspace_id, "usage_high", "x", USAGE)
    for each in others:
        each.until(lambda heard: heard)
    assert len(realtime.server.hub._streams) == 2


def test_who_is_refused_takes_no_place_of_the_process(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, member: Headers, opened: ExitStack
) -> None:
    set_bound(monkeypatch, "LIVE_STREAMS_PER_ADDRESS", 0)
    for _ in range(3):
        assert open_ear(opened, realtime, member).status == 429

    until(lambda: realtime.server.crowd._requests == 0)
    assert not any(places._taken for places in realtime.server.crowd._places.values())


def test_a_stream_that_has_ended_gives_all_its_places_back(
    realtime: Running, member: Headers, opened: ExitStack
) -> None:
    open_ear(opened, realtime, member).until_placed().close()

    until(lambda: realtime.server.crowd._requests == 0)
    assert not any(places._taken for places in realtime.server.crowd._places.values())
    assert not realtime.server.hub._of_actors


def test_an_address_has_a_number_of_streams_and_gets_them_back(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, member: Headers, opened: ExitStack
) -> None:
    set_bound(monkeypatch, "LIVE_STREAMS_PER_ADDRESS", 1)
    first = open_ear(opened, realtime, member)

    assert refusal(open_ear(opened, realtime, member)) == (429, "rate-limited", True)
    first.close()
    until(lambda: open_ear(opened, realtime, member).status == 200)


def test_a_workspace_has_a_number_of_streams_and_others_have_theirs(
    monkeypatch: pytest.MonkeyPatch,
    app: Flask,
    others: Api,
    realtime: Running,
    member: Headers,
    opened: ExitStack,
) -> None:
    set_bound(monkeypatch, "LIVE_STREAMS_PER_WORKSPACE", 1)
    open_ear(opened, realtime, member)

    assert refusal(open_ear(opened, realtime, member)) == (429, "rate-limited", True)
    other = {"Cookie": cookie(pages.member(app, others.workspace_id, email="eve@example.com"))}
    assert open_ear(opened, realtime, other).status == 200


@pytest.mark.parametrize(("name", "most"), [("LIVE_STREAMS", 1), ("LIVE_DESCRIPTORS", 0)])
def test_a_full_process_refuses_streams_and_answers_health_checks(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, member: Headers, opened: ExitStack, name: str, most: int
) -> None:
    set_bound(monkeypatch, name, most)
    if most:
        open_ear(opened, realtime, member)

    assert refusal(open_ear(opened, realtime, member)) == (503, "unavailable", True)
    for path in ("/healthz", "/readyz"):
        assert open_ear(opened, realtime, {}, path).status == 200


@pytest.mark.parametrize("name", ["LIVE_OPENINGS_PER_ACTOR", "LIVE_OPENINGS_PER_ADDRESS"])
def test_streams_that_are_opened_too_fast_are_refused_before_the_database_is_asked(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, member: Headers, opened: ExitStack, name: str
) -> None:
    set_bound(monkeypatch, name, 3)
    asked = []
    monkeypatch.setattr(listeners.sessions, "find", lambda *_, **__: asked.append(1))

    statuses = [open_ear(opened, realtime, member).status for _ in range(5)]
    assert (statuses, len(asked)) == ([401, 401, 401, 429, 429], 3)


def test_strangers_with_made_up_tokens_are_limited_by_address(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, opened: ExitStack
) -> None:
    set_bound(monkeypatch, "LIVE_OPENINGS_PER_ADDRESS", 3)
    made_up = [{"Authorization": f"Bearer bhv_{number:064x}"} for number in range(5)]

    statuses = [open_ear(opened, realtime, headers, "/live/chat").status for headers in made_up]
    assert statuses == [401, 401, 401, 429, 429]


def test_what_is_no_token_is_refused_without_the_database(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, opened: ExitStack
) -> None:
    monkeypatch.setattr(visitors, "authenticate", None)
    monkeypatch.setattr(listeners.sessions, "find", None)

    for path, headers in (
        ("/live/chat", {"Authorization": "Bearer x"}),
        ("/live/chat", {"Authorization": "Basic bhv_" + "0" * 64}),
        ("/live/workspace", {"Cookie": "bellhop=forged"}),
    ):
        assert open_ear(opened, realtime, headers, path).status == 401


def test_behind_a_proxy_an_address_is_that_of_the_client_and_an_ipv6_64_is_one(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, member: Headers, opened: ExitStack
) -> None:
    set_bound(monkeypatch, "LIVE_STREAMS_PER_ADDRESS", 1)
    behind_one = replace(server.settings(), trusted_proxies=1)
    monkeypatch.setattr(server, "settings", lambda: behind_one)

    def status(forwarded_for: str) -> int:
        return open_ear(opened, realtime, {**member, "X-Forwarded-For": forwarded_for}).status

    assert [status("2001:db8::1"), status("2001:db8::ffff"), status("2001:db8:0:1::1")] == [200, 429, 200]
    assert [status("10.9.9.9, 192.0.2.7"), status("10.8.8.8, 192.0.2.7"), status("192.0.2.8")] == [200, 429, 200]


def test_unfinished_requests_are_cut_off_oldest_first_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch, realtime: Running, opened: ExitStack
) -> None:
    set_bound(monkeypatch, "LIVE_HEADS_PER_ADDRESS", 5)
    slow = [opened.enter_context(socket.create_connection(("127.0.0.1", realtime.port), 20)) for _ in range(8)]
    for each in slow:
        each.sendall(b"GET /healthz HT")

    assert open_ear(opened, realtime, {}, "/healthz").status == 200
    for each in slow[:3]:
        assert is_cut_off(each)
    slow[-1].sendall(b"TP/1.1\r\nHost: bellhop.example\r\n\r\n")
    assert slow[-1].recv(1_000).startswith(b"HTTP/1.1 200")


def is_cut_off(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_visitors_stream_ends_with_the_channel(
    monkeypatch: pytest.MonkeyPatch, api: Api, realtime: Running, opened: ExitStack
) -> None:
    monkeypatch.setattr("app.live.hub.CHECKED_EVERY_SECONDS", 0.05)
    _, token = visitors.issue(make_chat(api.workspace_id), "k" * 32)
    ear = open_ear(opened, realtime, {"Authorization": f"Bearer {token}"}, "/live/chat").until_placed()

    rows("UPDATE channels SET deleted_at = now()")

    until(lambda: ear.listen().is_over)
    assert ear.open().status == 401
